// What else Kiln keeps in the cache folder, after a power cut: a driver's notes, the selector's model.
#include "core/cache/powercut/crash_states.hpp"
#include "core/cache/powercut/recording.hpp"
#include "core/cache/powercut/recovery.hpp"
#include "core/cache/workplace.hpp"
#include "runtime/device_table.hpp"
#include "selector/model_store.hpp"

#include <catch2/catch.hpp>

#include <ctime>

namespace kiln::test {
namespace {

using Complaint = std::function<std::string(const std::filesystem::path& folder)>;

// How many states there are, each of which the complaint has nothing against.
std::size_t check_all(const Recording& recorded, const Complaint& complaint) {
  REQUIRE(recorded.wrong == "");
  int wrong = 0;
  const auto check = [&](const CrashState& state) {
    const CacheTestFolder place;
    state.image.put(place.path(), std::time(nullptr));
    const std::string here = complaint(place.path());
    if (here.empty() || ++wrong > 5) return;
    UNSCOPED_INFO(text_of(state, recorded.operations) << ": " << here);
  };
  Exploration some;
  some.anything = some.by_chance = 100;
  const Explored explored = explore(recorded.before, recorded.operations, some, check);
  CHECK(wrong == 0);
  return explored.states;
}

std::vector<std::byte> note_of(char letter) { return std::vector<std::byte>(3000, static_cast<std::byte>(letter)); }

TEST_CASE("cache::power_cut: a driver's note is one that was kept, or unknown") {
  const CacheTestFolder place;
  const Recording recorded = record(place.path(), [&]() -> std::string {
    NoteStore notes(config_below(place.path()), "driver 1");
    notes.keep("widths", note_of('a'));
    notes.keep("widths", note_of('b'));
    return {};
  });
  if (!recorded.why_not.empty()) {
    WARN("skipped: " << recorded.why_not);
    return;
  }
  std::size_t found = 0;
  const std::size_t states = check_all(recorded, [&](const std::filesystem::path& folder) -> std::string {
    const CacheConfig config = config_below(folder);
    const auto note = NoteStore(config, "driver 1").find("widths");
    if (note && *note != note_of('a') && *note != note_of('b')) return "a false note";
    found += note ? 1 : 0;
    NoteStore(config, "driver 1").keep("widths", note_of('c'));
    const auto again = NoteStore(config, "driver 1").find("widths");
    return again && *again == note_of('c') ? "" : "a note was not kept";
  });
  CHECK(found > 0);
  CHECK(found < states);
}

// It is flushed before it gets its name.
TEST_CASE("cache::power_cut: the selector's model is one that was saved, whole") {
  using namespace kiln::selector;
  const CacheTestFolder place;
  const auto counts = [](std::uint64_t each) {
    UnfitCounts unfit;
    for (int i = 0; i < 60; ++i) unfit["reason number " + std::to_string(i)] = each;
    return unfit;
  };
  const Recording recorded = record(place.path(), [&]() -> std::string {
    for (int time = 0; time < 2; ++time) {
      if (!ModelStore(place.path(), {}).merge({}, counts(1))) return "the model was not saved";
    }
    return {};
  });
  if (!recorded.why_not.empty()) {
    WARN("skipped: " << recorded.why_not);
    return;
  }
  std::size_t found = 0;
  check_all(recorded, [&](const std::filesystem::path& folder) -> std::string {
    const auto model = read_model(folder / model_file);
    if (!model || !model->rejected.empty()) return "it is damaged";
    if (model->exists && model->unfit != counts(1) && model->unfit != counts(2)) return "it is another";
    found += model->exists ? 1 : 0;
    if (!ModelStore(folder, {}).merge({}, {{"reason number 1", 1}})) return "it was not saved again";
    const auto again = read_model(folder / model_file);
    return again && again->exists && again->rejected.empty() ? "" : "what was saved again is damaged";
  });
  CHECK(found > 0);
}

}  // namespace
}  // namespace kiln::test
