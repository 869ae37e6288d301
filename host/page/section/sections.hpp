// The sections of a report, each from those of the files that it is about; absent where none is.
//
// Thread-safety: pure. Ownership: values.
#pragma once

#include "page/input/input.hpp"
#include "page/render/page.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace kiln::host::page {

using Inputs = std::vector<PageInput>;

// In a few figures: what was run, found, compared and missed.
std::optional<Section> overview_section(const Inputs& inputs);
// Where the time to the first results went: set-up, programs by the tier that answered, the rest.
std::optional<Section> start_section(const Inputs& inputs);
// Where programs were found, and what that saved.
std::optional<Section> cache_section(const Inputs& inputs);
// The same job on each device.
std::optional<Section> devices_section(const Inputs& inputs);
// Rates by the work that a byte carries, below what the device could do.
std::optional<Section> roofline_section(const Inputs& inputs);
// An area of a bench: one section each.
std::vector<Section> bench_sections(const Inputs& inputs);
// Every variant that was measured, by shape.
std::vector<Section> tuning_sections(const Inputs& inputs);
// What each lane was busy with, and when.
std::vector<Section> lanes_sections(const Inputs& inputs);
// The files that the report was made from.
Section sources_section(const Inputs& inputs);

// All of them in the order in which they are read.
std::vector<Section> all_sections(const Inputs& inputs);

// --- what they share

// The contents of one kind, each with the label of its file.
template <class Content>
struct Labelled {
  const Content* content;
  std::string_view label;
};
template <class Content>
std::vector<Labelled<Content>> of_kind(const Inputs& inputs) {
  std::vector<Labelled<Content>> found;
  for (const PageInput& input : inputs) {
    if (const auto* content = std::get_if<Content>(&input.content)) found.push_back({content, input.label});
  }
  return found;
}

// "0.83", "12.3", "45 600": significant for a person, whatever its size.
std::string legible(double value);
// "0.83 ms"
std::string with_unit(double value, std::string_view unit);
std::string percent(double part, double whole);  // "–" where the whole is 0

}  // namespace kiln::host::page
