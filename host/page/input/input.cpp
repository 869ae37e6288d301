#include "page/input/input.hpp"

#include <kiln/regular_file.hpp>

#include <kiln/digest.hpp>

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>

namespace kiln::host::page {
namespace {

constexpr std::uint64_t most_bytes = std::uint64_t{64} << 20;
constexpr std::uint64_t known_schema = 1;
constexpr std::string_view expected_kinds =
    "expected what `kiln run --json`, `kiln run --trace`, `kiln bench`, `kiln tune export` or `kiln cache stats "
    "--json` "
    "wrote, or a cache's folder";

using Content = decltype(PageInput::content);

Status check_schema(const Json& document) {
  const auto schema = document.find("schema");
  if (schema == document.end() || *schema == known_schema) return {};
  return unsupported("schema " + json_text(*schema) + ", expected " + std::to_string(known_schema));
}

Result<Content> read_document(const Json& document) {
  Status problem;
  const auto read = [&](auto reader) -> Result<Content> {
    if (Status status = check_schema(document); !status.ok()) return status;
    Content content = reader(FieldReader(document, "", problem));
    if (!problem.ok()) return problem;
    return content;
  };
  if (document.contains("kind") && document["kind"] == "bench") {
    if (Status status = check_schema(document); !status.ok()) return status;
    auto bench = read_bench(document);
    if (!bench) return corrupt(bench.error().message);
    return Content(std::move(*bench));
  }
  if (document.contains("traceEvents"))
    return read([](FieldReader reader) { return Content(read_trace(std::move(reader))); });
  if (document.contains("jobs") && document.contains("cache")) {
    return read([](FieldReader reader) { return Content(read_run(std::move(reader))); });
  }
  if (document.contains("memory_hits") && document.contains("directory")) {
    return read([](FieldReader reader) { return Content(read_cache_stats(std::move(reader))); });
  }
  return invalid_argument("a JSON document of a kind that no report is made from: " + std::string(expected_kinds));
}

Result<Content> read_content(std::string_view text) {
  if (is_tuning_text(text)) {
    auto tuning = read_tuning(text);
    if (!tuning) return tuning.error();
    return Content(std::move(*tuning));
  }
  if (text.empty()) return corrupt("is empty: " + std::string(expected_kinds));
  const std::size_t begin = text.find_first_not_of(" \t\r\n");
  const bool looks_like_json = begin != std::string_view::npos && (text[begin] == '{' || text[begin] == '[');
  if (!looks_like_json) return invalid_argument("not recognised: " + std::string(expected_kinds));
  Json document = parse_json(text);
  if (document.is_discarded()) {
    return corrupt("begins as JSON and is cut off or damaged: expected one whole document, found " +
                   std::to_string(text.size()) + " bytes that are none");
  }
  if (document.is_array()) document = Json{{"traceEvents", std::move(document)}};  // the trace format's other form
  return read_document(document);
}

Result<PageInput> read_one(const std::string& file) {
  PageInput input;
  input.name = file;
  std::error_code error;
  if (std::filesystem::is_directory(file, error)) {
    auto folder = read_cache_folder(file);
    if (!folder) return folder.error().within("folder " + file);
    input.content = std::move(*folder);
    return input;
  }
  const auto text = read_whole_file(file, most_bytes);
  if (!text) return invalid_argument(text.error().message);
  input.digest = sha256(*text).hex();
  input.bytes = text->size();
  auto content = read_content(*text);
  if (!content) return content.error().within("file " + file);
  input.content = std::move(*content);
  return input;
}

std::string last_part(const std::filesystem::path& path, std::size_t parts) {
  std::filesystem::path last;
  std::filesystem::path rest = path.has_filename() ? path : path.parent_path();
  for (; parts > 0 && rest.has_filename(); --parts, rest = rest.parent_path()) {
    last = last.empty() ? rest.filename() : rest.filename() / last;
  }
  return last.string();
}

// As few parts of each name as tell it from the others.
void label(std::vector<PageInput>& inputs) {
  for (PageInput& input : inputs) input.label = last_part(input.name, 1);
  constexpr std::size_t most_parts = 4;
  for (std::size_t parts = 2; parts <= most_parts; ++parts) {
    std::map<std::string, int> seen;
    for (const PageInput& input : inputs) ++seen[input.label];
    for (PageInput& input : inputs) {
      if (seen[input.label] > 1) input.label = last_part(input.name, parts);
    }
  }
}

}  // namespace

std::string_view kind_words(const PageInput& input) noexcept {
  constexpr std::array<std::string_view, std::variant_size_v<Content>> words = {"a run", "a bench", "a tuning database",
                                                                                "a program cache", "a trace"};
  return words[input.content.index()];
}

Result<std::vector<PageInput>> read_page_inputs(const std::vector<std::string>& files) {
  std::vector<PageInput> inputs;
  for (const std::string& file : files) {
    auto input = read_one(file);
    if (!input) return input.error();
    inputs.push_back(std::move(*input));
  }
  label(inputs);
  return inputs;
}

}  // namespace kiln::host::page
