// Runs a fuzz target without libFuzzer: over each file of its corpus as it stands, then over copies of it altered by a
// fixed rule, so that every build finds the same. What is being tried lies in a file beside the binary while it runs, and
// stays there if the process dies of it.
//
// Usage: fuzz_<what> CORPUS [ROUNDS]: ROUNDS altered copies of each file, 100 unless told.
#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace {

using Bytes = std::vector<std::uint8_t>;

Bytes bytes_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

class Alterations {
 public:
  // From one to four changes: a bit flipped, a byte set to a corner value, a part removed, doubled or exchanged.
  Bytes altered(Bytes bytes) {
    for (std::size_t left = 1 + below(4); left > 0; --left) change(bytes);
    return bytes;
  }

 private:
  std::size_t below(std::size_t count) { return count == 0 ? 0 : random_() % count; }

  void change(Bytes& bytes) {
    static constexpr std::uint8_t corners[] = {0x00, 0x01, 0x7f, 0x80, 0xff, '0', '9', '-', '"', '\n'};
    if (bytes.empty()) bytes.push_back(0);
    const std::size_t at = below(bytes.size());
    const std::size_t length = std::min(bytes.size() - at, 1 + below(16));
    const auto from = bytes.begin() + static_cast<std::ptrdiff_t>(at);
    const auto to = from + static_cast<std::ptrdiff_t>(length);
    switch (below(6)) {
      case 0: bytes[at] = static_cast<std::uint8_t>(bytes[at] ^ (1u << below(8))); break;
      case 1: bytes[at] = corners[below(std::size(corners))]; break;
      case 2: bytes.erase(from, to); break;
      case 3: bytes.resize(at); break;
      case 4: {
        const Bytes part(from, to);
        bytes.insert(bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size())), part.begin(), part.end());
        break;
      }
      default: std::swap_ranges(from, to, bytes.begin() + static_cast<std::ptrdiff_t>(below(bytes.size() - length + 1))); break;
    }
  }

  std::mt19937_64 random_{1};
};

}  // namespace

int main(int count, char** arguments) {
  std::size_t rounds = 100;
  if (count == 3) {
    const std::string text = arguments[2];
    if (std::from_chars(text.data(), text.data() + text.size(), rounds).ptr != text.data() + text.size()) count = 0;
  }
  if (count != 2 && count != 3) {
    std::cerr << "usage: " << arguments[0] << " CORPUS [ROUNDS]\n";
    return 2;
  }
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(arguments[1])) files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    std::cerr << arguments[1] << ": holds no file\n";
    return 1;
  }
  const std::string tried = std::string(arguments[0]) + ".tried";
  Alterations alterations;
  std::size_t inputs = 0;
  const auto attempt = [&](const Bytes& bytes) {
    std::ofstream(tried, std::ios::binary).write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ++inputs;
  };
  for (const std::filesystem::path& file : files) {
    const Bytes bytes = bytes_of(file);
    attempt(bytes);
    for (std::size_t round = 0; round < rounds; ++round) attempt(alterations.altered(bytes));
  }
  std::filesystem::remove(tried);
  std::cout << inputs << " inputs from " << files.size() << " files\n";
  return 0;
}
