// RecordWriter, RecordReader: convert structs to bytes and back, for data that a device stores with a program's code, such
// as the resources that the program declares.
//
// The bytes contain the members in order, without padding. Integers and enumerations are in host byte order. A list follows
// its length. Only the same build can read the bytes. A struct needs a function fields() in its namespace that lists its
// members for both classes. This header has fields() for ProgramInterface.
// Thread-safety: values. Ownership: writer and reader borrow the bytes.
//
//   kiln::ProgramInterface declared, again;
//   std::vector<std::byte> record;
//   kiln::RecordWriter{record}(declared);
//   kiln::RecordReader read(record);
//   read(again);
//   if (!read.read_all()) return kiln::corrupt("the list of the program's resources is damaged");
#pragma once

#include <kiln/program_interface.hpp>
#include <kiln/uniform_values.hpp>

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <type_traits>
#include <vector>

namespace [[gnu::visibility("default")]] kiln {

// For fields(): `Archived<Point> auto& point` is a Point for a reader and a const Point for a writer.
//
//   template <class Archive>
//   void fields(Archive& archive, Archived<Point> auto& point) {
//     auto& [x, y] = point;  // a new member does not compile here
//     archive(x, y);
//   }
template <class Value, class Plain>
concept Archived = std::same_as<std::remove_const_t<Value>, Plain>;

// A contiguous list of numbers, copied with one call.
template <class List>
concept ArchivedAtOnce = requires(const List& list) {
  list.size();
  requires std::is_arithmetic_v<std::remove_cvref_t<decltype(*list.data())>> ||
      std::is_enum_v<std::remove_cvref_t<decltype(*list.data())>>;
};

// Hidden, because each library instantiates the templates and exports none.
class [[gnu::visibility("hidden")]] RecordWriter {
 public:
  explicit RecordWriter(std::vector<std::byte>& bytes) : bytes_(bytes) {}  // appends to `bytes`

  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }

 private:
  template <class Value>
  requires std::is_arithmetic_v<Value> || std::is_enum_v<Value>
  void put(const Value& value) {
    const auto* begin = reinterpret_cast<const std::byte*>(&value);
    bytes_.insert(bytes_.end(), begin, begin + sizeof value);
  }
  template <class Value, std::size_t count>
  void put(const std::array<Value, count>& values) {
    for (const Value& each : values) put(each);
  }
  template <class List>
  requires requires(const List& list) { list.size(); }
  void put(const List& list) {
    put(static_cast<std::uint32_t>(list.size()));
    if constexpr (ArchivedAtOnce<List>) {
      const auto numbers = std::as_bytes(std::span(list.data(), list.size()));
      bytes_.insert(bytes_.end(), numbers.begin(), numbers.end());
    } else {
      for (const auto& each : list) put(each);
    }
  }
  template <class Value>
  void put(const std::optional<Value>& value) {
    put(value.has_value());
    if (value) put(*value);
  }
  template <class Struct>
  void put(const Struct& value) {
    fields(*this, value);
  }

  std::vector<std::byte>& bytes_;
};

class [[gnu::visibility("hidden")]] RecordReader {
 public:
  explicit RecordReader(std::span<const std::byte> bytes) : left_(bytes) {}

  template <class... Values>
  void operator()(Values&... values) {
    (take(values), ...);
  }
  // Returns whether the bytes had all values and nothing after them. If false, the values may be incomplete.
  bool read_all() const noexcept { return good_ && left_.empty(); }

 private:
  template <class Value>
  requires std::is_arithmetic_v<Value> || std::is_enum_v<Value>
  void take(Value& value) {
    good_ = good_ && left_.size() >= sizeof value;
    if (!good_) return;
    if constexpr (std::is_same_v<Value, bool>) {
      good_ = left_[0] <= std::byte{1};  // a bool has no other values
      value = left_[0] == std::byte{1};
    } else {
      std::memcpy(&value, left_.data(), sizeof value);
    }
    left_ = left_.subspan(sizeof value);
  }
  template <class Value, std::size_t count>
  void take(std::array<Value, count>& values) {
    for (Value& each : values) take(each);
  }
  template <class List>
  requires requires(List& list) { list.resize(0); }
  void take(List& list) {
    std::uint32_t size = 0;
    take(size);
    if constexpr (ArchivedAtOnce<List>) {
      const std::size_t bytes = size * sizeof(*list.data());
      good_ = good_ && bytes <= left_.size();
      if (!good_) return;
      list.resize(size);
      if (size != 0) std::memcpy(list.data(), left_.data(), bytes);
      left_ = left_.subspan(bytes);
    } else {
      good_ = good_ && size <= left_.size();  // an element has at least one byte
      if (!good_) return;
      list.resize(size);
      for (auto& each : list) take(each);
    }
  }
  template <class Value>
  void take(std::optional<Value>& value) {
    bool has = false;
    take(has);
    if (has) take(value.emplace());
  }
  template <class Struct>
  void take(Struct& value) {
    fields(*this, value);
  }

  std::span<const std::byte> left_;
  bool good_ = true;
};

template <class Archive>
[[gnu::visibility("hidden")]] void fields(Archive& archive, Archived<TextureShape> auto& shape) {
  auto& [dimensions, layered, cube, buffer, alone, format] = shape;
  archive(dimensions, layered, cube, buffer, alone, format);
}

template <class Archive>
[[gnu::visibility("hidden")]] void fields(Archive& archive, Archived<ProgramResource> auto& resource) {
  auto& [kind, name, type, number, access, element, shape, matrix, lengths, has_default, mentioned, bytes,
         array_offset, array_stride, element_bytes, struct_elements, open_ended, block, texture, unusable, handle] =
      resource;
  archive(kind, name, type, number, access, element, shape, matrix, lengths, has_default, mentioned, bytes,
          array_offset, array_stride, element_bytes, struct_elements, open_ended, block, texture, unusable, handle);
}

template <class Archive>
[[gnu::visibility("hidden")]] void fields(Archive& archive, Archived<ProgramInterface> auto& interface) {
  auto& [resources, unused] = interface;
  archive(resources, unused);
}

template <class Archive>
[[gnu::visibility("hidden")]] void fields(Archive& archive, Archived<UniformPlace> auto& place) {
  auto& [count, offset, array_stride, matrix_stride, row_major] = place;
  archive(count, offset, array_stride, matrix_stride, row_major);
}

}  // namespace kiln
