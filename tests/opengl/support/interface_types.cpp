#include "opengl/support/interface_types.hpp"

#include <algorithm>
#include <cstring>

namespace kiln::support {
namespace {

GlslType numeric(char base, std::uint32_t rows, std::uint32_t columns) {
  const std::string scalar = base == 'f'   ? "float"
                             : base == 'd' ? "double"
                             : base == 'i' ? "int"
                             : base == 'u' ? "uint"
                                           : "bool";
  const std::string prefix = base == 'f' ? "" : std::string(1, base);
  GlslType type{scalar, base, rows, columns, {}};
  if (columns > 1) {
    type.name = prefix + "mat" + std::to_string(columns);
    if (rows != columns) type.name += "x" + std::to_string(rows);
  } else if (rows > 1) {
    type.name = prefix + "vec" + std::to_string(rows);
  }
  return type;
}

std::uint64_t vector_alignment(const GlslType& type) {
  return scalar_bytes(type.base) * (type.rows == 3 ? 4 : type.rows);
}

std::uint64_t column_stride(const GlslType& type, Packing packing) {
  return packing == Packing::std140 ? round_up(vector_alignment(type), 16) : vector_alignment(type);
}

std::uint64_t elements(const GlslMember& member, std::uint64_t open_length) {
  std::uint64_t count = 1;
  for (const std::uint32_t length : member.lengths) count *= length == 0 ? open_length : length;
  return count;
}

}  // namespace

const std::vector<GlslType>& numeric_types() {
  static const std::vector<GlslType> types = [] {
    std::vector<GlslType> made;
    for (const char base : {'f', 'd', 'i', 'u', 'b'}) {
      for (std::uint32_t rows = 1; rows <= 4; ++rows) made.push_back(numeric(base, rows, 1));
    }
    for (const char base : {'f', 'd'}) {
      for (std::uint32_t columns = 2; columns <= 4; ++columns) {
        for (std::uint32_t rows = 2; rows <= 4; ++rows) made.push_back(numeric(base, rows, columns));
      }
    }
    return made;
  }();
  return types;
}

std::uint64_t round_up(std::uint64_t value, std::uint64_t to) { return (value + to - 1) / to * to; }

std::uint64_t scalar_bytes(char base) { return base == 'd' ? 8 : 4; }

std::uint64_t alignment(const GlslType& type, Packing packing, bool in_array) {
  std::uint64_t least = 4;
  if (type.base == 's') {
    for (const GlslMember& member : type.members) {
      least = std::max(least, alignment(member.type, packing, !member.lengths.empty()));
    }
    return packing == Packing::std140 ? round_up(least, 16) : least;
  }
  least = vector_alignment(type);
  const bool array = in_array || type.columns > 1;
  return array && packing == Packing::std140 ? round_up(least, 16) : least;
}

std::uint64_t size(const GlslType& type, Packing packing) {
  if (type.base == 's') return round_up(offsets(type.members, packing).back(), alignment(type, packing));
  if (type.columns > 1) return type.columns * column_stride(type, packing);
  return type.rows * scalar_bytes(type.base);
}

std::uint64_t stride(const GlslType& type, Packing packing) {
  return round_up(size(type, packing), alignment(type, packing, true));
}

std::uint64_t size(const GlslMember& member, Packing packing, std::uint64_t open_length) {
  if (member.lengths.empty()) return size(member.type, packing);
  return stride(member.type, packing) * elements(member, open_length);
}

std::vector<std::uint64_t> offsets(const std::vector<GlslMember>& members, Packing packing, std::uint64_t open_length) {
  std::vector<std::uint64_t> all;
  std::uint64_t end = 0;
  for (const GlslMember& member : members) {
    end = round_up(end, alignment(member.type, packing, !member.lengths.empty()));
    all.push_back(end);
    end += size(member, packing, open_length);
  }
  all.push_back(end);
  return all;
}

std::vector<Component> components(const GlslType& type, Packing packing) {
  std::vector<Component> all;
  if (type.base == 's') {
    const std::vector<std::uint64_t> begins = offsets(type.members, packing);
    for (std::size_t i = 0; i < type.members.size(); ++i) {
      const GlslMember& member = type.members[i];
      for (std::uint64_t element = 0; element < elements(member, 1); ++element) {
        const std::string index = member.lengths.empty() ? "" : "[" + std::to_string(element) + "]";
        for (const Component& inner : components(member.type, packing)) {
          all.push_back({"." + member.name + index + inner.suffix,
                         begins[i] + element * stride(member.type, packing) + inner.offset, inner.base});
        }
      }
    }
    return all;
  }
  for (std::uint32_t column = 0; column < type.columns; ++column) {
    for (std::uint32_t row = 0; row < type.rows; ++row) {
      std::string suffix = type.columns > 1 ? "[" + std::to_string(column) + "]" : "";
      if (type.rows > 1) suffix += "[" + std::to_string(row) + "]";
      const std::uint64_t of_column = type.columns > 1 ? column * column_stride(type, packing) : 0;
      all.push_back({suffix, of_column + row * scalar_bytes(type.base), type.base});
    }
  }
  return all;
}

double read_scalar(const std::byte* at, char base) {
  const auto as = [at]<class T>(T value) {
    std::memcpy(&value, at, sizeof value);
    return static_cast<double>(value);
  };
  if (base == 'f') return as(float());
  if (base == 'd') return as(double());
  if (base == 'i') return as(std::int32_t());
  const double bits = as(std::uint32_t());
  return base == 'b' ? (bits != 0 ? 1 : 0) : bits;
}

void write_scalar(std::byte* at, char base, double value) {
  const auto as = [at](auto converted) { std::memcpy(at, &converted, sizeof converted); };
  if (base == 'f') return as(static_cast<float>(value));
  if (base == 'd') return as(value);
  if (base == 'i') return as(static_cast<std::int32_t>(value));
  as(static_cast<std::uint32_t>(static_cast<std::int64_t>(value)));
}

std::string declaration(const GlslMember& member) {
  std::string text = member.type.name + " " + member.name;
  for (const std::uint32_t length : member.lengths) text += "[" + (length == 0 ? "" : std::to_string(length)) + "]";
  return text;
}

}  // namespace kiln::support
