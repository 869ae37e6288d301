#include "c_interface/status.hpp"

#include <kiln/version.hpp>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace kiln::c_interface {
namespace {

// Handed over where a status cannot be allocated. Its text fits into std::string itself.
kiln_status& no_memory_left() noexcept {
  static kiln_status status{{StatusCode::unavailable, "out of memory"}};
  return status;
}

static_assert(KILN_OK == static_cast<int>(StatusCode::ok) &&
                  KILN_WRONG_RESULT == static_cast<int>(StatusCode::wrong_result),
              "kiln_code has the values of StatusCode");

}  // namespace

kiln_status* handed_over(Status status) noexcept {
  if (status.ok()) return nullptr;
  auto* made = new (std::nothrow) kiln_status{std::move(status)};
  return made == nullptr ? &no_memory_left() : made;
}

Status null_argument(const char* function, const char* argument) {
  return invalid_argument(std::string(function) + ": " + argument + " is NULL");
}

Status check_size(const char* function, const char* name, std::size_t size, std::size_t least) {
  constexpr std::size_t most = 4096;                   // no struct of this interface comes near it
  constexpr std::size_t whole = alignof(std::size_t);  // any other size ends within a member
  if (size >= least && size <= most && size % whole == 0) return {};
  return invalid_argument(std::string(function) + ": " + name + ".size is " + std::to_string(size) +
                          ", expected sizeof(" + name + "), at least " + std::to_string(least) + " and a multiple of " +
                          std::to_string(whole) + ". Set size before the call");
}

Status copy_struct(const char* function, const char* name, const void* from, void* to, std::size_t size) {
  if (from == nullptr) return null_argument(function, name);
  std::size_t given = 0;
  std::memcpy(&given, from, sizeof given);
  if (Status status = check_size(function, name, given, 2 * sizeof(void*)); !status.ok()) return status;
  std::memset(to, 0, size);
  std::memcpy(to, from, std::min(given, size));
  const auto* bytes = static_cast<const unsigned char*>(from);
  for (std::size_t at = size; at < given; ++at) {
    if (bytes[at] == 0) continue;
    return unsupported(std::string(function) + ": " + name + " sets a member at byte " + std::to_string(at) +
                       " that Kiln " + version + " does not have (the struct has " + std::to_string(size) +
                       " bytes). Use a newer libkiln.so, or set the member to zero");
  }
  return {};
}

char* copied_text(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

}  // namespace kiln::c_interface

using namespace kiln::c_interface;

kiln_code kiln_status_code(const kiln_status* status) {
  return status == nullptr ? KILN_OK : static_cast<kiln_code>(status->status.code);
}

const char* kiln_status_message(const kiln_status* status) {
  return status == nullptr ? "" : status->status.message.c_str();
}

kiln_status* kiln_status_make(kiln_code code, const char* message) {
  const int number = static_cast<int>(code);
  return guarded([&]() -> kiln::Status {
    if (number == KILN_OK) return {};
    if (number < KILN_OK || number > KILN_WRONG_RESULT) {
      return kiln::internal_error("kiln_status_make: code " + std::to_string(number) + ", expected a kiln_code, 0 to " +
                                  std::to_string(static_cast<int>(KILN_WRONG_RESULT)));
    }
    return {static_cast<kiln::StatusCode>(number), message == nullptr ? "" : message};
  });
}

void kiln_status_free(kiln_status* status) {
  if (status != nullptr && status != &no_memory_left()) delete status;
}

const char* kiln_code_name(kiln_code code) {
  const int number = static_cast<int>(code);
  return number < KILN_OK || number > KILN_WRONG_RESULT ? "invalid"
                                                        : kiln::to_string(static_cast<kiln::StatusCode>(code)).data();
}

const char* kiln_version(void) { return kiln::version; }

void kiln_text_free(char* text) { std::free(text); }
