// The lines of a tuning database's file, read and written by themselves: what tests plant there, and look for.
//
// Thread-safety: pure but for reading the named file. Ownership: values.
#pragma once

#include <kiln/digest.hpp>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace kiln::test {

struct TuningLine {
  enum Field : std::size_t { device_id, spec, variant_id, verdict_word, when, source, error, bound, wall, device, why };

  std::vector<std::string> fields;  // without the checksum

  std::string variant() const { return fields.at(variant_id); }
  std::string verdict() const { return fields.at(verdict_word); }
};

// Without the first line, which tells the form.
inline std::vector<TuningLine> tuning_lines(const std::filesystem::path& file) {
  std::vector<TuningLine> lines;
  std::ifstream in(file);
  std::string text;
  std::getline(in, text);
  while (std::getline(in, text)) {
    TuningLine& line = lines.emplace_back();
    for (std::size_t at = 0, tab; (tab = text.find('\t', at)) != std::string::npos; at = tab + 1) {
      line.fields.push_back(text.substr(at, tab - at));
    }
  }
  return lines;
}

inline std::string tuning_text(const std::vector<TuningLine>& lines) {
  std::string text = "kiln-tuning 1\n";
  for (const TuningLine& line : lines) {
    std::string record;
    for (const std::string& field : line.fields) record += field + "\t";
    text += record + sha256(record).hex().substr(0, 16) + "\n";
  }
  return text;
}

}  // namespace kiln::test
