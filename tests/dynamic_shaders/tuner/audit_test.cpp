// Audits of winners on a bench that answers what the test says.
#include "dynamic_shaders/generator.hpp"

#include <kiln/program.hpp>

#include <algorithm>
#include <catch2/catch.hpp>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <map>

#include "dynamic_shaders/sample_specs.hpp"
#include "dynamic_shaders/space/variant_space.hpp"
#include "dynamic_shaders/variants.hpp"

namespace kiln::dynamic_shaders {
namespace {

namespace fs = std::filesystem;

class SaidBench final : public VariantBench {
 public:
  Result<VariantSamples> measure(std::string_view variant, std::uint32_t runs,
                                 std::chrono::nanoseconds) noexcept override {
    asked.emplace_back(variant);
    if (!failure.ok()) return failure;
    VariantSamples samples;
    const auto own = own_wall_ns.find(variant);
    const std::uint64_t each_ns = own == own_wall_ns.end() ? wall_ns : own->second;
    for (std::uint32_t run = 0; run < runs; ++run) samples.wall_ns.push_back(each_ns + run);
    if (differing == variant) samples.agreement = 2;
    if (const auto group = groups.find(variant); group != groups.end()) samples.agreement = group->second;
    samples.device_ns = samples.wall_ns;
    return samples;
  }
  std::uint64_t wall_ns = 0;
  std::map<std::string, std::uint64_t, std::less<>> own_wall_ns;
  std::string differing;                                     // the variant with another output
  std::map<std::string, std::uint32_t, std::less<>> groups;  // VariantSamples::agreement
  Status failure;
  std::vector<std::string> asked;
};

struct Fixture {
  fs::path folder;
  Conv2dSpec spec;
  DeviceInfo device = sample_device();
  SaidBench bench;

  Fixture() {
    std::string name = (fs::temp_directory_path() / "kiln-audit-XXXXXX").string();
    folder = mkdtemp(name.data());
    spec.c = spec.k = 16;
    spec.h = spec.w = 12;
    spec.r = spec.s = 3;
    spec.pad_y = spec.pad_x = 1;
  }
  ~Fixture() { fs::remove_all(folder); }

  // direct/plain won with 1 ms, give or take.
  void remember_winner(const std::string& source = {}) {
    TuningRecord won;
    won.device = device_digest(device);
    won.spec = canonical_text(spec);
    won.variant = "direct/plain";
    won.verdict = Verdict::winner;
    won.when = 1700000000;
    won.source = source;
    if (source.empty()) {
      const auto plan = Generator().generate_variant(spec, device, Dialect::glsl, won.variant);
      for (const Pass& pass : plan->passes) won.source += key_of(pass.source, device, {}).digest.hex().substr(0, 16);
    }
    for (std::uint64_t i = 0; i < 15; ++i) won.wall_ns.push_back(990'000 + i * 1'500);
    won.device_ns = won.wall_ns;
    REQUIRE(TuningDatabase(folder / "tuning.tsv").put({won}).ok());
  }
  TuneOutcome audit() {
    Generator generator(folder);
    TuneOptions options;
    options.audit = true;
    auto outcome = generator.tune(spec, device, Dialect::glsl, bench, options);
    INFO((outcome ? std::string() : outcome.error().text()));
    REQUIRE(outcome.has_value());
    return std::move(*outcome);
  }
  std::string kept() {
    return TuningDatabase(folder / "tuning.tsv").winner(device_digest(device), canonical_text(spec))->why;
  }
};

}  // namespace

TEST_CASE("dynamic_shaders::audit: a winner holds within a quarter, is stale beyond it, and can hold again") {
  Fixture f;
  f.remember_winner();
  f.bench.wall_ns = 1'200'000;
  CHECK(f.audit().stale.empty());
  CHECK(f.kept().empty());
  f.bench.wall_ns = 1'400'000;
  const TuneOutcome slow = f.audit();
  CHECK(slow.variant == "direct/plain");
  CHECK(slow.wall_ns == 1'400'004);
  CHECK(slow.recorded_wall_ns == 1'000'500);
  CHECK_THAT(slow.stale, Catch::Contains("1.400 ms") && Catch::Contains("when tuned 1.000 ms"));
  CHECK(f.kept() == slow.stale);
  f.bench.wall_ns = 900'000;
  CHECK(f.audit().stale.empty());
  CHECK(f.kept().empty());
  CHECK(f.bench.asked == std::vector<std::string>(3, "direct/plain"));
}

TEST_CASE("dynamic_shaders::audit: wrong results, hangs, crashes and changed sources make a winner stale") {
  Fixture f;
  f.remember_winner();
  for (const Status& failure : {corrupt("differs"), Status{StatusCode::timeout, "hangs"},
                                Status{StatusCode::device_lost, "ended its process"}}) {
    f.bench.failure = failure;
    CHECK_THAT(f.audit().stale, Catch::Contains(failure.message));
    CHECK_THAT(f.kept(), Catch::Contains(failure.message));
  }
  f.bench.asked.clear();
  f.remember_winner("of another day");
  CHECK_THAT(f.audit().stale, Catch::Contains("sources have changed"));
  CHECK(f.bench.asked.empty());
}

TEST_CASE("dynamic_shaders::audit: what the bench cannot do says nothing of the winner; nothing tuned is told") {
  Fixture f;
  TuneOptions options;
  options.audit = true;
  Generator none(f.folder);
  const auto nothing = none.tune(f.spec, f.device, Dialect::glsl, f.bench, options);
  REQUIRE_FALSE(nothing.has_value());
  CHECK(nothing.error().code == StatusCode::not_found);
  f.remember_winner();
  f.bench.failure = unavailable("no process can be started");
  Generator generator(f.folder);
  CHECK(generator.tune(f.spec, f.device, Dialect::glsl, f.bench, options).error().code == StatusCode::unavailable);
  CHECK(f.kept().empty());
  REQUIRE(generator.tuning() != nullptr);
  CHECK(generator.tuning()->tuned(f.device) == std::vector<KernelSpec>{f.spec});
  DeviceInfo other = f.device;
  other.driver_identity.emplace_back("version", "another");
  CHECK(generator.tuning()->tuned(other).empty());
}

TEST_CASE("dynamic_shaders::tuning_database: an older winner from elsewhere does not displace the one here") {
  Fixture f;
  f.remember_winner();
  TuningDatabase here(f.folder / "tuning.tsv");
  TuningRecord theirs = *here.winner(device_digest(f.device), canonical_text(f.spec));
  const TuningRecord ours = theirs;
  theirs.variant = "direct/blocked:theirs";
  TuningDatabase there({});
  for (const std::uint64_t when : {ours.when - 1, ours.when + 1}) {
    theirs.when = when;
    REQUIRE(there.put({theirs}).ok());
    const auto merged = here.merge(there.text());
    REQUIRE(merged.has_value());
    CHECK(merged->taken == 1);
    const std::string winner = here.winner(ours.device, ours.spec)->variant;
    CHECK(winner == (when < ours.when ? ours.variant : theirs.variant));
  }
  const auto again = here.merge(there.text());
  CHECK(again->taken == 0);
  CHECK(again->older == 1);
  CHECK(here.merge("kiln-tuning 7\n").error().code == StatusCode::corrupt);
}

TEST_CASE("dynamic_shaders::audit: a winner that runs slowly again and again becomes stale without an audit") {
  Fixture f;
  f.remember_winner();
  Generator generator(f.folder, false, nullptr, std::chrono::nanoseconds(0));
  REQUIRE(generator.generate(f.spec, f.device, Dialect::glsl)->variant == "direct/plain");
  Measurement slow;
  slow.first_run = true;
  slow.device_ns = 2'000'000;
  for (int i = 0; i < 20; ++i) generator.record(f.spec, f.device, "direct/plain", slow);
  CHECK(f.kept().empty());  // a first run is no measure
  slow.first_run = false;
  slow.contended = true;
  for (int i = 0; i < 20; ++i) generator.record(f.spec, f.device, "direct/plain", slow);
  CHECK(f.kept().empty());  // nor is one beside other work
  slow.contended = false;
  slow.batch = 3;
  for (int i = 0; i < 20; ++i) generator.record(f.spec, f.device, "direct/plain", slow);
  CHECK(f.kept().empty());  // nor the time of three jobs
  slow.batch = 1;
  CHECK(generator.tuning()->state(f.spec, f.device) == TuningState::tuned);
  for (int i = 0; i < 8; ++i) generator.record(f.spec, f.device, "direct/plain", slow);
  CHECK_THAT(f.kept(), Catch::Contains("runs in a row took 2000000 ns"));
  CHECK(generator.tuning()->state(f.spec, f.device) == TuningState::stale);
  CHECK(generator.generate(f.spec, f.device, Dialect::glsl)->variant == "direct/plain");  // it goes on serving

  // Tuned again, it is measured anew, and the mark is gone.
  f.bench.wall_ns = 2'000'000;
  TuneOptions options;
  options.budget = std::chrono::milliseconds(1);
  REQUIRE(generator.tune(f.spec, f.device, Dialect::glsl, f.bench, options).has_value());
  CHECK(std::ranges::count(f.bench.asked, "direct/plain") >= 1);
  CHECK(generator.tuning()->state(f.spec, f.device) == TuningState::tuned);
}

namespace {

// A machine with a winner of the shape that is not what the model would choose there, and one that has nothing.
struct TwoMachines {
  Fixture there, here;
  Generator writer{there.folder}, reader{here.folder};
  std::string preferred, text;

  TwoMachines() {
    there.remember_winner();
    preferred = reader.generate(here.spec, here.device, Dialect::glsl)->variant;
    REQUIRE(preferred != "direct/plain");
    text = writer.winners_text(there.device);
    REQUIRE(reader.merge_foreign(text, here.device)->taken == 1);
  }
  TuneOutcome sample() {
    TuneOptions options;
    options.audit = true;
    auto outcome = reader.tune(here.spec, here.device, Dialect::glsl, here.bench, options);
    INFO((outcome ? std::string() : outcome.error().text()));
    REQUIRE(outcome.has_value());
    return std::move(*outcome);
  }
  std::string used() { return reader.generate(here.spec, here.device, Dialect::glsl)->variant; }
};

}  // namespace

TEST_CASE("dynamic_shaders::exchange: a winner of another machine is used only after it was measured here") {
  TwoMachines m;
  CHECK(m.used() == m.preferred);
  CHECK(m.reader.state(m.here.spec, m.here.device) == TuningState::untuned);
  CHECK(m.reader.is_foreign(m.here.spec, m.here.device));
  CHECK(m.reader.tuned(m.here.device).empty());
  CHECK(m.reader.foreign(m.here.device) == std::vector<KernelSpec>{m.here.spec});
  // Its own times of another machine do not count: it is slower than there, and faster than what is used here.
  m.here.bench.wall_ns = 9'000'000;
  m.here.bench.own_wall_ns["direct/plain"] = 8'000'000;
  const TuneOutcome outcome = m.sample();
  CHECK(outcome.stale.empty());
  CHECK(outcome.variant == "direct/plain");
  CHECK(outcome.incumbent == m.preferred);
  CHECK(outcome.wall_ns == 8'000'004);
  CHECK(outcome.incumbent_wall_ns == 9'000'004);
  CHECK(m.here.bench.asked == std::vector<std::string>{"direct/plain", m.preferred});
  CHECK(m.used() == "direct/plain");
  CHECK(m.reader.state(m.here.spec, m.here.device) == TuningState::tuned);
  CHECK(m.reader.foreign(m.here.device).empty());
  // From now on it is this machine's, with this machine's times, and is not asked for again.
  CHECK(TuningDatabase(m.here.folder / "tuning.tsv")
            .winner(device_digest(m.here.device), canonical_text(m.here.spec))
            ->wall_ns.front() == 8'000'000);
  CHECK(m.reader.merge_foreign(m.text, m.here.device)->older == 1);
}

TEST_CASE("dynamic_shaders::exchange: one that is slower, wrong, crashes or is of other sources is not used") {
  const auto refused = [](const std::string& why, const std::function<void(TwoMachines&)>& change) {
    TwoMachines m;
    m.here.bench.wall_ns = 1'000'000;
    change(m);
    CHECK_THAT(m.sample().stale, Catch::Contains(why));
    CHECK(m.used() == m.preferred);
    CHECK(m.reader.state(m.here.spec, m.here.device) == TuningState::untuned);
    CHECK(*m.reader.accept_foreign(m.here.device) == 0);
    CHECK(m.used() == m.preferred);
    // The same record does not come in again.
    CHECK(m.reader.merge_foreign(m.text, m.here.device)->older == 1);
  };
  refused("takes 2.000 ms", [](TwoMachines& m) { m.here.bench.own_wall_ns["direct/plain"] = 2'000'000; });
  refused("differs from that of", [](TwoMachines& m) { m.here.bench.differing = "direct/plain"; });
  refused("ended its process", [](TwoMachines& m) {
    m.here.bench.failure = Status{StatusCode::device_lost, "ended its process"};
  });
  TwoMachines m;
  m.there.remember_winner("of another version");
  Generator other(m.there.folder);
  Fixture third;
  Generator reader(third.folder);
  CHECK(reader.merge_foreign(other.winners_text(m.there.device), third.device)->older == 1);
  // One that came in before this machine had this version.
  const std::string machine = device_digest(third.device), shape = canonical_text(third.spec);
  TuningRecord waiting = *TuningDatabase(m.there.folder / "tuning.tsv").winner(machine, shape);
  waiting.verdict = Verdict::foreign;
  REQUIRE(TuningDatabase(third.folder / "tuning.tsv").put({waiting}).ok());
  TuneOptions options;
  options.audit = true;
  CHECK_THAT(reader.tune(third.spec, third.device, Dialect::glsl, third.bench, options)->stale,
             Catch::Contains("another version"));
  CHECK(third.bench.asked.empty());
}

TEST_CASE("dynamic_shaders::exchange: what the bench cannot do leaves the winner waiting") {
  TwoMachines m;
  m.here.bench.failure = unavailable("no process can be started");
  TuneOptions options;
  options.audit = true;
  CHECK(m.reader.tune(m.here.spec, m.here.device, Dialect::glsl, m.here.bench, options).error().code ==
        StatusCode::unavailable);
  CHECK(m.reader.state(m.here.spec, m.here.device) == TuningState::untuned);
  CHECK(m.reader.is_foreign(m.here.spec, m.here.device));
  CHECK(*m.reader.accept_foreign(m.here.device) == 1);
  CHECK(m.used() == "direct/plain");
}

TEST_CASE("dynamic_shaders::exchange: what is measured here stays, and other devices' winners do not come in") {
  Fixture there, here;
  there.remember_winner();
  here.remember_winner();
  Generator writer(there.folder), reader(here.folder);
  const std::string text = writer.winners_text(there.device);
  CHECK_THAT(text, Catch::StartsWith("kiln-tuning 1\n") && Catch::Contains("\twinner\t"));
  CHECK(reader.merge_foreign(text, here.device)->older == 1);
  Fixture third;
  Generator other(third.folder);
  DeviceInfo device = third.device;
  device.speed_identity.emplace_back("clock", "half");
  CHECK(other.merge_foreign(text, device)->older == 1);
  CHECK(other.winners_text(device).empty());
  CHECK(other.merge_foreign("kiln-tuning 7\n", device).error().code == StatusCode::corrupt);
  std::string damaged = text;
  damaged[damaged.size() - 30] ^= 1;
  CHECK(other.merge_foreign(damaged, third.device)->damaged == 1);
  // A machine passes on what it has not measured itself, so that a remote loses nothing when it writes.
  REQUIRE(other.merge_foreign(text, third.device)->taken == 1);
  CHECK(other.winners_text(third.device) == text);
  CHECK_THAT(other.exported(), Catch::Contains("\tforeign\t"));
}

TEST_CASE("dynamic_shaders::exchange: a winner that another process stored meanwhile stays") {
  Fixture there, here;
  there.remember_winner();
  Generator writer(there.folder), reader(here.folder);
  const std::string text = writer.winners_text(there.device);
  CHECK(reader.state(here.spec, here.device) == TuningState::untuned);  // it has read its file
  here.remember_winner();
  const auto merged = reader.merge_foreign(text, here.device);
  REQUIRE(merged.has_value());
  CHECK(merged->taken == 0);
  CHECK(merged->older == 1);
  CHECK_FALSE(reader.is_foreign(here.spec, here.device));
}

TEST_CASE("dynamic_shaders::state: untuned, tuned by another process, and what has nothing to choose from") {
  Fixture f;
  Generator generator(f.folder);
  CHECK(generator.tuning()->state(f.spec, f.device) == TuningState::untuned);
  CHECK(generator.tuning()->state(UserKernelSpec{}, f.device) == TuningState::fixed);
  UserKernelSpec open;
  open.parameters.push_back({"TILE", {"8", "16"}});
  CHECK(generator.tuning()->state(open, f.device) == TuningState::untuned);
  const std::uint64_t revision = generator.revision();
  f.remember_winner();  // by a database of its own, as another process would
  CHECK(generator.tuning()->state(f.spec, f.device) == TuningState::tuned);
  CHECK(generator.revision() > revision);  // what was planned before is planned again
  const std::uint64_t known = generator.revision();
  CHECK(generator.tuning()->state(f.spec, f.device) == TuningState::tuned);
  CHECK(generator.revision() == known);
}

TEST_CASE("dynamic_shaders::audit: two others that agree against a winner without a reference make it stale") {
  const std::string winner = "direct/plain";
  struct Case {
    std::uint32_t own, first, second;  // groups
    bool contradicted;
  };
  for (const Case& each : {Case{1, 3, 3, true},
                           {1, 1, 1, false},
                           {1, 3, 1, false},     // one alone says nothing
                           {1, 3, 4, false},     // nor do two that differ
                           {0, 3, 3, false}}) {  // there is a reference
    CAPTURE(each.own, each.first, each.second);
    Fixture f;
    f.remember_winner();
    std::vector<std::string> others;
    TuningDatabase database(f.folder / "tuning.tsv");
    for (const Candidate& candidate : conv_space(f.spec, f.device)) {
      if (candidate.variant == winner || others.size() == 3) continue;
      const auto plan = plan_of(f.spec, f.device, Dialect::glsl, candidate.variant);
      if (!plan) continue;
      TuningRecord measured;
      measured.device = device_digest(f.device), measured.spec = canonical_text(f.spec);
      measured.variant = candidate.variant, measured.verdict = Verdict::measured, measured.when = 1700000000;
      measured.source = source_digest(*plan, f.device);
      measured.wall_ns = {2'000'000};
      if (others.empty()) {  // what was rejected, or measured with other sources, is not asked
        TuningRecord rejected = measured;
        rejected.verdict = Verdict::rejected;
        REQUIRE(database.put({rejected}).ok());
      } else {
        REQUIRE(database.put({measured}).ok());
      }
      others.push_back(candidate.variant);
    }
    REQUIRE(others.size() == 3);
    f.bench.wall_ns = 1'000'000;
    f.bench.groups = {{winner, each.own}, {others[0], 3}, {others[1], each.first}, {others[2], each.second}};
    const std::string stale = f.audit().stale;
    if (each.contradicted) {
      CHECK_THAT(stale, Catch::Contains("differs from that of two other variants"));
    } else {
      CHECK(stale.empty());
    }
    CHECK(f.bench.asked.size() == (each.own == 0 ? 1 : 3));
    CHECK(std::ranges::count(f.bench.asked, others[0]) == 0);
  }
}

TEST_CASE("dynamic_shaders::audit: a product of matrices is tuned, watched and exchanged as a convolution is") {
  Fixture f, other;
  const GemmSpec product{64, 96, 128};
  f.bench.wall_ns = 2'000'000;
  f.bench.own_wall_ns["gemm/plain"] = 1'000'000;
  Generator generator(f.folder, false, nullptr, std::chrono::nanoseconds(0));
  TuneOptions options;
  const auto tuned = generator.tune(product, f.device, Dialect::glsl, f.bench, options);
  INFO((tuned ? std::string() : tuned.error().text()));
  REQUIRE(tuned.has_value());
  CHECK(tuned->variant == "gemm/plain");
  CHECK(generator.generate(product, f.device, Dialect::glsl)->variant == "gemm/plain");
  CHECK(generator.state(product, f.device) == TuningState::tuned);
  CHECK(generator.tuned(f.device) == std::vector<KernelSpec>{product});
  // Elsewhere it waits to be measured.
  Generator reader(other.folder);
  REQUIRE(reader.merge_foreign(generator.winners_text(f.device), other.device)->taken == 1);
  CHECK(reader.foreign(other.device) == std::vector<KernelSpec>{product});
  CHECK(reader.is_foreign(product, other.device));
  CHECK_FALSE(reader.is_foreign(GemmSpec{64, 96, 160}, other.device));
  TuningRecord changed = *TuningDatabase(f.folder / "tuning.tsv").winner(device_digest(f.device), record_spec(product));
  changed.source = "of another version", changed.when += 10;
  TuningDatabase elsewhere({});
  REQUIRE(elsewhere.put({changed}).ok());
  Fixture third;
  CHECK(Generator(third.folder).merge_foreign(elsewhere.winners_text(changed.device), third.device)->older == 1);
  // Slow runs in a row: but not of another product.
  Measurement slow;
  slow.device_ns = 9'000'000, slow.batch = 1;
  for (int i = 0; i < 9; ++i) generator.record(GemmSpec{64, 96, 160}, f.device, "gemm/plain", slow);
  CHECK(generator.state(product, f.device) == TuningState::tuned);
  slow.device_ns = 0;  // not measured
  for (int i = 0; i < 9; ++i) generator.record(product, f.device, "gemm/plain", slow);
  CHECK(generator.state(product, f.device) == TuningState::tuned);
  slow.device_ns = 9'000'000;
  for (int i = 0; i < 9; ++i) generator.record(product, f.device, "gemm/plain", slow);
  CHECK(generator.state(product, f.device) == TuningState::stale);
}

TEST_CASE("dynamic_shaders::audit: what has nothing to tune, and a folder that is only read, are refused") {
  Fixture f;
  f.remember_winner();
  Generator generator(f.folder), reading(f.folder, true);
  UserKernelSpec fixed;
  fixed.text = "void main() {}", fixed.dialect = Dialect::glsl, fixed.grid = {1, 1, 1}, fixed.entry = "main";
  for (const KernelSpec& spec : {KernelSpec(fixed), KernelSpec(SoftmaxSpec{})}) {
    const auto refused = generator.tune(spec, f.device, Dialect::glsl, f.bench, {});
    REQUIRE_FALSE(refused.has_value());
    INFO(refused.error().text());
    CHECK((refused.error().code == StatusCode::unsupported || refused.error().code == StatusCode::invalid_argument));
  }
  const auto refused = reading.tune(f.spec, f.device, Dialect::glsl, f.bench, {});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == StatusCode::unavailable);
  CHECK_THAT(refused.error().message, Catch::Contains("cache.read_only is true"));
  CHECK(generator.tune(f.spec, f.device, Dialect::library, f.bench, {}).error().code == StatusCode::unsupported);
  CHECK(generator.generate_variant(f.spec, f.device, Dialect::code_object, "direct/plain").error().code ==
        StatusCode::unsupported);
  CHECK(f.bench.asked.empty());
  CHECK(*generator.accept_foreign(f.device) == 0);
}

}  // namespace kiln::dynamic_shaders
