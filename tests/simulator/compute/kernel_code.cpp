#include "tests/simulator/compute/kernel_code.hpp"

#include <unistd.h>

#include <catch2/catch.hpp>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace kiln::simulator::test {
namespace {

template <class T>
T read(const std::vector<char>& bytes, std::size_t at) {
  T value{};
  REQUIRE(at + sizeof(T) <= bytes.size());
  std::memcpy(&value, bytes.data() + at, sizeof(T));
  return value;
}

constexpr std::uint32_t program_bits = 1;  // SHT_PROGBITS

struct Section {
  std::uint32_t type = 0;
  std::string name;
  std::uint64_t address = 0, offset = 0, size = 0;
  std::uint32_t link = 0;
};

std::vector<Section> sections_of(const std::vector<char>& file) {
  const auto table = read<std::uint64_t>(file, 0x28);
  const auto count = read<std::uint16_t>(file, 0x3C), names = read<std::uint16_t>(file, 0x3E);
  std::vector<Section> sections;
  std::vector<std::uint32_t> name_offsets;
  for (unsigned i = 0; i < count; ++i) {
    const std::size_t at = table + i * 64U;
    name_offsets.push_back(read<std::uint32_t>(file, at));
    sections.push_back({read<std::uint32_t>(file, at + 4), "", read<std::uint64_t>(file, at + 16),
                        read<std::uint64_t>(file, at + 24), read<std::uint64_t>(file, at + 32),
                        read<std::uint32_t>(file, at + 40)});
  }
  for (unsigned i = 0; i < count; ++i) sections[i].name = file.data() + sections[names].offset + name_offsets[i];
  return sections;
}

std::optional<std::uint64_t> symbol(const std::vector<char>& file, const std::vector<Section>& sections,
                                    const std::string& name) {
  constexpr std::uint32_t symbol_table = 2;
  for (const Section& section : sections) {
    if (section.type != symbol_table) continue;
    for (std::uint64_t at = section.offset; at < section.offset + section.size; at += 24) {
      if (name == file.data() + sections[section.link].offset + read<std::uint32_t>(file, at)) {
        return read<std::uint64_t>(file, at + 8);
      }
    }
  }
  return std::nullopt;
}

const Section& holder(const std::vector<Section>& sections, std::uint64_t address) {
  for (const Section& section : sections) {
    if (section.address != 0 && address >= section.address && address < section.address + section.size) return section;
  }
  FAIL("no section holds " << address);
  return sections.front();
}

KernelCode taken_from(const std::vector<char>& file, const std::string& target, const std::string& name) {
  const std::vector<Section> sections = sections_of(file);
  const std::optional<std::uint64_t> descriptor = symbol(file, sections, name + ".kd");
  REQUIRE(descriptor);
  const Section& data = holder(sections, *descriptor);
  const std::size_t at = data.offset + (*descriptor - data.address);
  const std::uint64_t entry = *descriptor + static_cast<std::uint64_t>(read<std::int64_t>(file, at + 16));
  const Section& text = holder(sections, entry);
  REQUIRE(text.address % 256 == 0);
  KernelCode code;
  code.generation = target == "gfx1100" ? Generation::gfx11 : Generation::gfx10_3;
  // With the constants before it, which the code addresses relative to itself.
  code.text.resize((text.address + text.size) / 4);
  for (const Section& section : sections) {
    if (section.address == 0 || section.type != program_bits || section.address > text.address) continue;
    std::memcpy(reinterpret_cast<char*>(code.text.data()) + section.address, file.data() + section.offset,
                section.size);
  }
  code.entry = static_cast<std::uint32_t>(entry);
  code.lds_bytes = read<std::uint32_t>(file, at);
  code.private_bytes = read<std::uint32_t>(file, at + 4);
  code.rsrc3 = read<std::uint32_t>(file, at + 44);
  code.rsrc1 = read<std::uint32_t>(file, at + 48);
  code.rsrc2 = read<std::uint32_t>(file, at + 52);
  code.properties = read<std::uint16_t>(file, at + 56);
  return code;
}

}  // namespace

bool compiler_present() {
  const char* path = std::getenv("PATH");
  std::string folders = path == nullptr ? "" : path;
  for (std::size_t begin = 0; begin < folders.size();) {
    const std::size_t end = std::min(folders.find(':', begin), folders.size());
    if (::access((folders.substr(begin, end - begin) + "/clang-19").c_str(), X_OK) == 0) return true;
    begin = end + 1;
  }
  return false;
}

std::optional<KernelCode> compiled_file(const std::string& target, const std::filesystem::path& source,
                                        const std::string& name, const std::string& options) {
  const std::filesystem::path object =
      std::filesystem::temp_directory_path() /
      ("kiln-sim-" + std::to_string(::getpid()) + "-" + target + "-" + source.stem().string() + ".co");
  const std::string command = "clang-19 -x cl -cl-std=CL2.0 -target amdgcn-amd-amdhsa -mcpu=" + target +
                              " -nogpulib -O3 " + options + " -o '" + object.string() + "' '" + source.string() + "'";
  INFO(command);
  if (std::system(command.c_str()) != 0) return std::nullopt;
  std::ifstream stream(object, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  std::filesystem::remove(object);
  return taken_from(bytes, target, name);
}

KernelCode compiled_kernel(const std::string& target, const std::string& file, const std::string& name,
                           const std::string& options) {
  INFO(file << ".cl for " << target << " with " << options);
  const std::optional<KernelCode> code =
      compiled_file(target, std::filesystem::path(KILN_TEST_KERNELS) / (file + ".cl"), name, options);
  REQUIRE(code);
  return *code;
}

}  // namespace kiln::simulator::test
