// Status and Result<T>: the return types of every function that can fail.
//
// A Status is a code and a message. The message has the object, the expected and the found value. Result<T> is a value or a
// failed Status. It has the member names of std::expected, which is missing in GCC 12. A function returns std::optional if
// an absent result is not an error.
// Exceptions: functions of Runtime, ProgramCache, Executor, DeviceSelector, Driver, Device and KernelGenerator that
// return a Status, a Result or a report throw nothing. All other functions may throw only std::bad_alloc.
// Thread-safety: values. Ownership: both own their contents.
//
//   kiln::Result<int> parsed = parse(text);
//   if (!parsed) return parsed.error().within("line 3");
//   use(*parsed);
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace [[gnu::visibility("default")]] kiln {

enum class StatusCode : std::uint8_t {
  ok = 0,
  invalid_argument,  // the argument is wrong; a retry fails again
  not_found,         // a named thing does not exist
  unsupported,       // valid but not possible here; permanent for this object
  unavailable,       // not possible now; another device or a later call may work
  corrupt,           // stored bytes are damaged or not authentic
  io,                // error of the operating system
  timeout,           // the deadline passed; the work may still be running
  device_lost,       // the device must be opened again
  cancelled,         // cancelled by the caller
  internal,          // a bug in Kiln
  wrong_result,      // verification: a result differs from its reference by more than the tolerance
};

// Name of the code in reports: "invalid_argument".
std::string_view to_string(StatusCode code) noexcept;

struct [[nodiscard]] Status {
  StatusCode code = StatusCode::ok;
  std::string message;

  bool ok() const noexcept { return code == StatusCode::ok; }

  // Returns the failure with "context: " before its message. Returns an ok Status unchanged.
  Status within(std::string_view context) const;

  // "invalid_argument: the message", or "ok".
  std::string text() const;
};

inline Status ok_status() { return {}; }
inline Status invalid_argument(std::string message) { return {StatusCode::invalid_argument, std::move(message)}; }
inline Status not_found(std::string message) { return {StatusCode::not_found, std::move(message)}; }
inline Status unsupported(std::string message) { return {StatusCode::unsupported, std::move(message)}; }
inline Status unavailable(std::string message) { return {StatusCode::unavailable, std::move(message)}; }
inline Status corrupt(std::string message) { return {StatusCode::corrupt, std::move(message)}; }
inline Status io_error(std::string message) { return {StatusCode::io, std::move(message)}; }
inline Status timed_out(std::string message) { return {StatusCode::timeout, std::move(message)}; }
inline Status device_lost(std::string message) { return {StatusCode::device_lost, std::move(message)}; }
inline Status cancelled(std::string message) { return {StatusCode::cancelled, std::move(message)}; }
inline Status wrong_result(std::string message) { return {StatusCode::wrong_result, std::move(message)}; }
inline Status internal_error(std::string message) { return {StatusCode::internal, std::move(message)}; }

// Converts the current exception to a Status. unavailable: out of memory, or no thread could be started. internal: any
// other exception, with its what(). `context` precedes the message, as with within(). REQUIRES: called in a catch
// clause.
//   Status Mine::start() noexcept try { ...; return {}; } catch (...) { return caught("mine"); }
Status caught(std::string_view context = {}) noexcept;

// A T or a failed Status. REQUIRES: not constructed from an ok Status.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {
    if (std::get<1>(state_).ok()) std::get<1>(state_) = internal_error("Result created from an ok Status");
  }

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // REQUIRES: has_value().
  T& value() & noexcept { return *std::get_if<0>(&state_); }
  const T& value() const& noexcept { return *std::get_if<0>(&state_); }
  T&& value() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & noexcept { return value(); }
  const T& operator*() const& noexcept { return value(); }
  T&& operator*() && noexcept { return std::move(*this).value(); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  // REQUIRES: !has_value().
  const Status& error() const& noexcept { return *std::get_if<1>(&state_); }
  Status&& error() && noexcept { return std::move(*std::get_if<1>(&state_)); }

  T value_or(T other) && { return has_value() ? std::move(*this).value() : std::move(other); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace kiln
