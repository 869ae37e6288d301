// Text: source code collected line by line, with its indentation.
//
// Thread-safety: none. Ownership: owns what it has collected until take().
#pragma once

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

namespace kiln::dynamic_shaders {

class Text {
 public:
  explicit Text(int depth = 0) : depth_(depth) {}

  template <class... Parts>
  void line(const Parts&... parts) {
    text_.append(static_cast<std::size_t>(depth_) * 2, ' ');
    (append(parts), ...);
    text_ += '\n';
  }
  // A line that ends with an opening brace; close() ends it.
  template <class... Parts>
  void open(const Parts&... parts) {
    line(parts..., " {");
    ++depth_;
  }
  void close();
  void blank() { text_ += '\n'; }
  void lines(std::string_view ready) { text_ += ready; }  // indented already

  std::string take() { return std::exchange(text_, {}); }

 private:
  template <class Part>
  void append(const Part& part) {
    if constexpr (std::is_arithmetic_v<Part>) {
      static_assert(std::is_integral_v<Part>, "a locale or a precision must not change generated text");
      text_ += std::to_string(part);
    } else {
      text_ += part;
    }
  }

  std::string text_;
  int depth_;
};

}  // namespace kiln::dynamic_shaders
