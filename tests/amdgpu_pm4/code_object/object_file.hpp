// A code object of tests/corpus/code_object as bytes, with enough of a reader of its own to change one thing in it.
//
// Thread-safety: values. Ownership: owns its bytes. A file or a part that is not there fails the test that asks for it.
#pragma once

#include <kiln/status.hpp>

#include <elf.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "amdgpu_pm4/code_object/code_object.hpp"

namespace kiln::amdgpu_pm4 {

struct ObjectFile {
  std::vector<std::byte> bytes;

  static ObjectFile named(const std::string& name);  // of the corpus

  Elf64_Shdr section(std::string_view name) const;
  // Where the section's contents begin in the file.
  std::size_t offset_of(std::string_view section_name) const { return section(section_name).sh_offset; }
  // The file's offset of the kernel descriptor of the first kernel.
  std::size_t descriptor() const { return offset_of(".rodata"); }
  // Behind the first occurrence of the text.
  std::size_t behind(std::string_view text) const;

  template <class Value>
  Value get(std::size_t offset) const {
    Value value;
    std::memcpy(&value, bytes.data() + offset, sizeof value);
    return value;
  }
  template <class Value>
  ObjectFile with(std::size_t offset, Value value) const {
    ObjectFile changed = *this;
    std::memcpy(changed.bytes.data() + offset, &value, sizeof value);
    return changed;
  }
  ObjectFile with_text(std::string_view old, std::string_view changed) const;  // of one length

  CodeObject read() const;      // REQUIREs that it can be read
  std::string refusal() const;  // the error's text(); REQUIREs one
};

}  // namespace kiln::amdgpu_pm4
