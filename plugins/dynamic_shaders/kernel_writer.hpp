// KernelWriter: GLSL and OpenCL C from one description, the form that it is written in, and its lines.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <kiln/kernel.hpp>

namespace kiln::dynamic_shaders {

inline std::string text_of(std::int64_t value) { return std::to_string(value); }

// Form: in what the passes of a plan are written: the language, and whether a text holds for one shape or for any.
//
// For one shape its numbers are written out. For any shape they have names, a program reads them from one more binding,
// and each pass comes with the table that this binding holds: so the same text, and the same program, serves other
// shapes with other tables. Thread-safety: values. Ownership: borrows `tables`.

using NumberTable = std::vector<std::int32_t>;

struct Form {
  Form(Dialect language = Dialect::glsl, std::vector<NumberTable>* to = nullptr) : dialect(language), tables(to) {}

  bool any_shape() const noexcept { return tables != nullptr; }

  Dialect dialect;
  std::vector<NumberTable>* tables;  // table i is bound as {BindingSource::constant, i}; null: for one shape
};

// Text: source code collected line by line, with its indentation.
//
// Thread-safety: none. Ownership: owns what it has collected until take().
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

// KernelWriter: one pass written in the dialect that was asked for: GLSL 4.30 or OpenCL C from the same calls.
//
// What both languages spell alike (arithmetic, int, float, loops, .x .y .z .w) is written as text by the families; what
// they spell otherwise (bindings, loads, vectors, lane numbers, the frame) only here.
// Thread-safety: none. Ownership: owns what it has collected until take().

enum class Element : std::uint8_t { invalid = 0, scalar, vector };  // one float or four

class KernelWriter {
 public:
  // REQUIRES: form.dialect is glsl or opencl_c. title: one line of comment.
  KernelWriter(const Form& form, std::string title);

  Dialect dialect() const noexcept { return form_.dialect; }
  bool any_shape() const noexcept { return form_.any_shape(); }
  // factor * value + plus, where `value` is a number of the shape: written out, or by its name, of which the whole
  // kernel knows one value. It may stand behind "+" and, without `plus`, behind "*"; with neither factor nor plus,
  // anywhere.
  std::string number(std::string_view name, std::int64_t value, std::int64_t factor = 1, std::int64_t plus = 0);

  // Declares the next binding. A view other than storage has vectors and is read only; OpenCL C has none and falls back
  // to memory.
  void bind(std::string_view name, Element element, Access access, Binding to, View view = View::storage);

  // Memory that a workgroup shares, of so many elements; used like a binding.
  void share(std::string_view name, Element element, std::int64_t count);
  // A statement: every lane of the workgroup waits for the others, and sees what they wrote to shared memory.
  std::string barrier() const;

  // Statements of the kernel's body.
  Text& body() noexcept { return body_; }

  // Expressions. The index counts elements of the binding.
  std::string load(std::string_view name, const std::string& index) const;
  std::string store(std::string_view name, const std::string& index, const std::string& value) const;  // a statement
  std::string vector(const std::string& x, const std::string& y, const std::string& z, const std::string& w) const;
  std::string splat(const std::string& value) const;
  std::string maximum(const std::string& a, const std::string& b) const;  // of floats
  std::string minimum(const std::string& a, const std::string& b) const;
  std::string activated(const std::string& value, Activation activation) const;  // of a float or a vector
  std::string vector_type() const;
  std::string zero() const;  // a float
  std::string literal(double value) const;
  std::string lane(int axis) const;   // within the workgroup, an int
  std::string group(int axis) const;  // number of the workgroup, an int
  std::string globally(int axis) const;
  std::string unsigned_lane(int axis) const;  // the same, each a uint
  std::string unsigned_group(int axis) const;
  std::string unsigned_globally(int axis) const;  // in OpenCL C as wide as a size
  std::string to_int(const std::string& value) const;
  std::string to_unsigned(const std::string& value) const;

  // Appends the pass's numbers to the form's tables, where the text is for any shape.
  Pass take(const std::array<std::uint32_t, 3>& workgroup, const std::array<std::uint32_t, 3>& grid);

 private:
  struct Slot {
    std::string name;
    Element element = Element::invalid;
    Access access = Access::invalid;
    View view = View::invalid;
  };
  struct Shared {
    std::string name;
    Element element = Element::invalid;
    std::int64_t count = 0;
  };
  const Slot* slot(std::string_view name) const;  // nullptr: it is shared memory
  // A number that the language itself gives a lane, along an axis.
  std::string builtin(const char* glsl, const char* opencl, int axis) const;
  std::string int_of(const std::string& builtin) const;
  std::string glsl_frame(const std::array<std::uint32_t, 3>& workgroup) const;
  std::string opencl_frame(const std::array<std::uint32_t, 3>& workgroup) const;
  std::string numbers_frame() const;

  Form form_;
  std::string title_;
  std::vector<Slot> slots_;
  std::vector<Shared> shared_;
  std::vector<Binding> bindings_;
  std::map<std::string, std::int32_t> numbers_;  // of the shape, by name: the order in which they are bound
  Text body_{1};
};

// BandLoads: the values of a band of a plane, loaded when first asked for and once each.
//
// A band is what lies between two places of a plane, the border above and below included; bands of one plane begin a
// fixed step apart, so that a value's place is a number counted from its band's beginning, and only the first and the
// last bands can ask for what lies outside. Values are floats or texels of four; a plane is a whole number of them.
// Thread-safety: none. Ownership: borrows the writer.

class BandLoads {
 public:
  // The binding `x` is loaded. The kernel's text sets `int band`, where the band begins in its plane, and
  // `int first_x`, where it begins in the binding.
  BandLoads(KernelWriter& writer, Element element, std::int64_t bands, std::int64_t step, std::int64_t plane)
      : writer_(writer), element_(element), bands_(bands), step_(step), plane_(plane) {}

  // The variable that holds the value so far from the band's beginning, zero where that lies outside the plane; empty:
  // it does in every band.
  std::string at(std::int64_t place);

 private:
  KernelWriter& writer_;
  Element element_;
  std::int64_t bands_, step_, plane_;  // step from band to band and a plane, in values
  std::set<std::int64_t> loaded_;
};

}  // namespace kiln::dynamic_shaders
