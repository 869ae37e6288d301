#include <kiln_json.hpp>

#include <kiln/visible_text.hpp>

#include <array>
#include <mutex>
#include <new>

namespace kiln {
namespace {

// Taken from its beginning on, and free again as a whole: a list lives as long as a destructor runs.
class Reserve {
 public:
  void* take(std::size_t bytes) {
    constexpr std::size_t alignment = alignof(std::max_align_t);
    const std::lock_guard lock(mutex_);
    const std::size_t wanted = (bytes + alignment - 1) / alignment * alignment;
    if (wanted < bytes || wanted > bytes_.size() - used_) return nullptr;
    void* const list = bytes_.data() + used_;
    used_ += wanted;
    ++lists_;
    return list;
  }

  bool give_back(void* list) noexcept {
    if (list < bytes_.data() || list >= bytes_.data() + bytes_.size()) return false;
    const std::lock_guard lock(mutex_);
    if (--lists_ == 0) used_ = 0;
    return true;
  }

 private:
  std::mutex mutex_;
  std::size_t used_ = 0, lists_ = 0;
  alignas(std::max_align_t) std::array<std::byte, std::size_t{1} << 20> bytes_{};
};

// Of the process, as its memory is.
constinit Reserve reserve_of_lists;

}  // namespace

void* allocate_json_list(std::size_t bytes) {
  void* list = ::operator new(bytes, std::nothrow);
  if (list == nullptr) list = reserve_of_lists.take(bytes);
  if (list == nullptr) throw std::bad_alloc();
  return list;
}

void free_json_list(void* list) noexcept {
  if (!reserve_of_lists.give_back(list)) ::operator delete(list);
}

namespace {

// The library reads any depth, but a call for each level writes it.
bool is_too_deep(std::string_view text) {
  constexpr std::size_t most = 512;
  std::size_t depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string && c == '\\') {
      ++at;
    } else if (c == '"') {
      in_string = !in_string;
    } else if (!in_string && (c == '[' || c == '{')) {
      if (++depth > most) return true;
    } else if (!in_string && (c == ']' || c == '}') && depth > 0) {
      --depth;
    }
  }
  return false;
}

}  // namespace

Json parse_json(std::string_view text) {
  return is_too_deep(text) ? Json(Json::value_t::discarded) : Json::parse(text, nullptr, false);
}

std::string json_text(const Json& json, int indent) {
  const std::string text = json.dump(indent, ' ', false, Json::error_handler_t::replace);
  // The library escapes C0 alone. The others stand inside strings, where an escape means the same.
  std::string safe;
  std::size_t copied = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto first = static_cast<unsigned char>(text[at]);
    const std::string_view rest = std::string_view(text).substr(at);
    const std::size_t length = first < 0x7f ? 1 : character_length(rest);
    if (first >= 0x7f && is_control_character(rest.substr(0, length))) {
      safe.append(text, copied, at - copied);
      safe += visible(rest.substr(0, length)).replace(0, 2, "\\u").insert(2, length == 1 ? "00" : "");
      copied = at + length;
    }
    at += length;
  }
  if (copied == 0) return text;
  return safe.append(text, copied);
}

}  // namespace kiln
