// Every file of the kept corpus, every beginning of each, and each with single bytes changed: an answer or a refusal.
#include <catch2/catch.hpp>
#include <filesystem>

#include "amdgpu_pm4/code_object/describe.hpp"
#include "amdgpu_pm4/code_object/object_file.hpp"

namespace kiln::amdgpu_pm4 {
namespace {

// What is read keeps its promises, whatever the bytes.
void check_promises(std::span<const std::byte> bytes) {
  const auto object = read_code_object(bytes);
  if (!object) {
    if (object.error().message.empty()) FAIL("a refusal without a word");
    return;
  }
  if (object->kernels.empty() || object->target == Target::invalid) FAIL("an object without kernels or target");
  for (const KernelCode& kernel : object->kernels) {
    if (kernel.entry % 256 != 0 || kernel.entry + 256 > object->image.size()) FAIL("an entry outside the image");
    for (const KernelArgument& argument : kernel.arguments) {
      if (argument.offset + argument.size > kernel.kernarg_bytes) FAIL("an argument outside its segment");
    }
  }
  for (const AddressWord& word : object->address_words) {
    if (word.offset + 8 > object->image.size() || word.target > object->image.size()) FAIL("an address outside");
  }
  if (describe(*object).empty()) FAIL("an object without a word");
}

}  // namespace

TEST_CASE("corpus: the readable files are read, the others refused") {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(KILN_SOURCE_DIR "/tests/corpus/code_object")) {
    const std::string name = entry.path().filename().string();
    INFO(name);
    ++files;
    CHECK(read_code_object(ObjectFile::named(name).bytes).has_value() == name.starts_with("readable"));
  }
  CHECK(files >= 18);
}

TEST_CASE("corpus: beginnings and changed bytes are answered or refused") {
  for (const char* const name : {"readable-gfx1100", "readable-linked", "readable-relocated"}) {
    INFO(name);
    ObjectFile file = ObjectFile::named(name);
    for (std::size_t size = 0; size < file.bytes.size(); size += 3) {
      check_promises(std::span<const std::byte>(file.bytes).first(size));
    }
    std::uint32_t state = 12345;
    for (std::size_t at = 0; at < file.bytes.size(); ++at) {
      state = state * 1664525 + 1013904223;
      const std::byte kept = file.bytes[at];
      for (const std::byte changed : {std::byte{0}, std::byte{0xFF}, static_cast<std::byte>(state >> 24)}) {
        file.bytes[at] = changed;
        check_promises(file.bytes);
      }
      file.bytes[at] = kept;
    }
  }
}

}  // namespace kiln::amdgpu_pm4
