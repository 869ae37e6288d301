#include <algorithm>
#include <array>
#include <catch2/catch.hpp>
#include <memory>
#include <set>
#include <thread>

#include "conformance/checks.hpp"
#include "conformance/reference.hpp"

namespace kiln::conformance {
namespace {

// A small convolution bound to buffers of its own, ready to be launched again and again.
class Job {
 public:
  explicit Job(std::uint64_t seed) : plan_(plan_for(small_conv())), tensors_(random_tensors(plan_.tensors, seed)) {
    for (std::size_t i = 0; i < tensors_.size(); ++i) {
      BufferDesc desc;
      desc.bytes = plan_.tensors[i].bytes;
      desc.usage = plan_.tensors[i].role == TensorRole::output ? BufferUsage::readback : BufferUsage::upload;
      buffers_.push_back(make(desc));
      REQUIRE(buffers_.back()->write(0, bytes_of(tensors_[i])).ok());
    }
    for (const ScratchDecl& scratch : plan_.scratch) scratch_.push_back(make_storage(scratch.bytes));
    for (const PreparedDecl& prepared : plan_.prepared) prepared_.push_back(make_storage(prepared.bytes));
    for (const auto& constant : plan_.constants) {
      const std::span<const std::byte> bytes = constant->tensor().bytes();
      constants_.push_back(make_storage(bytes.size()));
      REQUIRE(constants_.back()->write(0, bytes).ok());
    }
    add(plan_.prepare);
    if (!launches_.empty()) {
      const auto value = submit();
      REQUIRE(value.has_value());
      REQUIRE(subject().device->wait(*value, Deadline::never()).has_value());
      launches_.clear();
    }
    add(plan_.passes);
  }

  Result<std::uint64_t> submit() const { return subject().device->submit({launches_}); }

  // The output differs from the reference: how. Empty: it does not.
  std::string difference() {
    const Status read = buffers_.back()->read(0, bytes_of(tensors_.back()));
    if (!read.ok()) return read.text();
    return first_difference(expected_of(small_conv(), tensors_), tensors_.back());
  }

  const std::vector<PassLaunch>& launches() const { return launches_; }

 private:
  static std::unique_ptr<Buffer> make(const BufferDesc& desc) {
    auto buffer = subject().device->create_buffer(desc);
    REQUIRE(buffer.has_value());
    return std::move(buffer).value();
  }

  static std::unique_ptr<Buffer> make_storage(std::uint64_t bytes) {
    BufferDesc desc;
    desc.bytes = bytes;
    desc.usage = BufferUsage::storage;
    return make(desc);
  }

  void add(const std::vector<Pass>& passes) {
    for (const Pass& pass : passes) {
      auto program = subject().device->build(pass.source);
      REQUIRE(program.has_value());
      programs_.push_back(std::move(program).value());
      auto& bound = bound_.emplace_back(std::make_unique<std::vector<Buffer*>>());
      for (const Binding& binding : pass.bindings) {
        const auto& from = binding.source == BindingSource::tensor     ? buffers_
                           : binding.source == BindingSource::scratch  ? scratch_
                           : binding.source == BindingSource::prepared ? prepared_
                                                                       : constants_;
        bound->push_back(from[binding.index].get());
      }
      launches_.push_back({programs_.back().get(), *bound, pass.grid});
    }
  }

  KernelPlan plan_;
  std::vector<std::vector<float>> tensors_;
  std::vector<std::unique_ptr<Buffer>> buffers_, scratch_, prepared_, constants_;
  std::vector<std::unique_ptr<Program>> programs_;
  std::vector<std::unique_ptr<std::vector<Buffer*>>> bound_;
  std::vector<PassLaunch> launches_;
};

}  // namespace

TEST_CASE("conformance: timeline values start at 1 or above and grow", "[conformance][queue]") {
  if (!present()) return;
  Job job(31);
  std::uint64_t last = 0;
  for (int i = 0; i < 5; ++i) {
    const auto value = job.submit();
    REQUIRE(value.has_value());
    CHECK(*value > last);
    last = *value;
    const auto fence = subject().device->wait(last, Deadline::never());
    REQUIRE(fence.has_value());
  }
  CHECK(job.difference() == "");
}

TEST_CASE("conformance: values may be waited for out of order", "[conformance][queue]") {
  if (!present()) return;
  Job first(32), second(33), third(34);
  const auto a = first.submit(), b = second.submit(), c = third.submit();
  REQUIRE((a && b && c));
  CHECK(subject().device->wait(*c, Deadline::never()).has_value());
  CHECK(subject().device->wait(*a, Deadline::never()).has_value());
  CHECK(subject().device->wait(*b, Deadline::never()).has_value());
  CHECK(first.difference() == "");
  CHECK(second.difference() == "");
  CHECK(third.difference() == "");
}

TEST_CASE("conformance: a wait whose deadline has passed answers timeout or the result", "[conformance][queue]") {
  if (!present()) return;
  Job job(35);
  const auto value = job.submit();
  REQUIRE(value.has_value());
  const auto at_once = subject().device->wait(*value, {Clock::now() - std::chrono::seconds(1)});
  if (!at_once.has_value()) {
    CHECK(at_once.error().code == StatusCode::timeout);
    CHECK_FALSE(at_once.error().message.empty());
    CHECK(subject().device->wait(*value, Deadline::never()).has_value());  // the work went on
  }
  CHECK(job.difference() == "");
}

TEST_CASE("conformance: a result is taken once", "[conformance][queue]") {
  if (!present()) return;
  Job job(36);
  const auto value = job.submit();
  REQUIRE(value.has_value());
  REQUIRE(subject().device->wait(*value, Deadline::never()).has_value());
  const auto again = subject().device->wait(*value, Deadline::after(std::chrono::seconds(5)));
  REQUIRE_FALSE(again.has_value());
  CHECK(is_one_of(again.error(), {StatusCode::not_found, StatusCode::invalid_argument}));
}

TEST_CASE("conformance: waiting for a value that was never submitted is a typed error", "[conformance][queue]") {
  if (!present()) return;
  Job job(37);
  const auto value = job.submit();
  REQUIRE(value.has_value());
  for (const std::uint64_t never : {std::uint64_t{0}, *value + 1000}) {
    INFO("value " << never);
    const auto fence = subject().device->wait(never, Deadline::after(std::chrono::seconds(5)));
    REQUIRE_FALSE(fence.has_value());
    CHECK(is_one_of(fence.error(), {StatusCode::not_found, StatusCode::invalid_argument}));
  }
  CHECK(subject().device->wait(*value, Deadline::never()).has_value());
}

TEST_CASE("conformance: a launch with the wrong number of bindings is a typed error", "[conformance][queue]") {
  if (!present()) return;
  Job job(38);
  PassLaunch launch = job.launches().front();
  launch.bindings = launch.bindings.first(launch.bindings.size() - 1);
  const auto value = subject().device->submit({std::span(&launch, 1)});
  if (value.has_value()) {
    const auto fence = subject().device->wait(*value, Deadline::never());
    REQUIRE_FALSE(fence.has_value());
    CHECK(is_one_of(fence.error(), {StatusCode::invalid_argument}));
  } else {
    CHECK(is_one_of(value.error(), {StatusCode::invalid_argument}));
  }
  const auto next = job.submit();  // the queue goes on
  REQUIRE(next.has_value());
  CHECK(subject().device->wait(*next, Deadline::never()).has_value());
  CHECK(job.difference() == "");
}

namespace {

// Counts in a buffer, and two programs: one writes them, the other adds what it reads of them once a workgroup.
class CountedGroups {
 public:
  CountedGroups() {
    set_ = build("void main() { counts[1] += 3u; counts[2] = 2u; counts[3] = 1u; }");
    add_ = build("void main() { atomicAdd(counts[0], counts[1]); }");
    BufferDesc desc;
    desc.bytes = 4 * sizeof(std::uint32_t);
    desc.usage = BufferUsage::readback;
    auto made = subject().device->create_buffer(desc);
    REQUIRE(made.has_value());
    buffer_ = std::move(*made);
    bound_[0] = buffer_.get();
    write({0, 0, 0, 0});
  }

  void write(const std::array<std::uint32_t, 4>& counts) {
    REQUIRE(buffer_->write(0, std::as_bytes(std::span(counts))).ok());
  }
  std::array<std::uint32_t, 4> counts() {
    std::array<std::uint32_t, 4> read{};
    REQUIRE(buffer_->read(0, std::as_writable_bytes(std::span(read))).ok());
    return read;
  }
  PassLaunch set() const { return {set_.get(), bound_, {1, 1, 1}}; }
  PassLaunch add(std::uint64_t offset = 4, std::uint32_t binding = 0) const {
    PassLaunch launch{add_.get(), bound_, {1, 1, 1}};
    launch.indirect = IndirectGrid{binding, offset};
    return launch;
  }
  static Status run(const std::vector<PassLaunch>& launches) {
    const auto value = subject().device->submit({launches});
    if (!value) return value.error();
    const auto fence = subject().device->wait(*value, Deadline::never());
    return fence ? Status() : fence.error();
  }

 private:
  static std::unique_ptr<Program> build(const std::string& body) {
    KernelSource source;
    source.dialect = Dialect::glsl;
    source.text =
        "#version 430\nlayout(local_size_x = 1) in;\n"
        "layout(std430, binding = 0) buffer Counts { uint counts[]; };\n" +
        body + "\n";
    source.bindings = {Access::read_write};
    auto program = subject().device->build(source);
    REQUIRE(program.has_value());
    return std::move(*program);
  }

  std::unique_ptr<Program> set_, add_;
  std::unique_ptr<Buffer> buffer_;
  std::array<Buffer*, 1> bound_{};
};

}  // namespace

TEST_CASE("conformance: a grid is read from a buffer when its pass begins, or refused as unsupported",
          "[conformance][queue]") {
  if (!present()) return;
  if (!subject().device->info().indirect_grids) {
    Job job(39);
    std::vector<PassLaunch> launches = job.launches();
    launches.front().indirect = IndirectGrid{0, 0};
    CHECK(is_one_of(CountedGroups::run(launches), {StatusCode::unsupported}));
    return;
  }
  CountedGroups groups;
  // 3 x 2 workgroups of 3, then 6 x 2 of 6: each pass has the counts of the one before it.
  REQUIRE(CountedGroups::run({groups.set(), groups.add(), groups.set(), groups.add()}).text() == "ok");
  CHECK(groups.counts() == std::array<std::uint32_t, 4>{18 + 72, 6, 2, 1});
  // The same commands again, with other counts.
  groups.write({0, 1, 0, 0});
  for (int i = 0; i < 3; ++i) REQUIRE(CountedGroups::run({groups.set(), groups.add()}).text() == "ok");
  CHECK(groups.counts() == std::array<std::uint32_t, 4>{2 * (16 + 49 + 100), 10, 2, 1});
  groups.write({5, 0, 1, 1});
  REQUIRE(CountedGroups::run({groups.add()}).text() == "ok");
  CHECK(groups.counts()[0] == 5);

  for (const std::uint64_t offset : {2u, 8u, 16u, 0xfffffff8u}) {
    INFO(offset);
    CHECK(is_one_of(CountedGroups::run({groups.add(offset)}), {StatusCode::invalid_argument}));
  }
  CHECK(is_one_of(CountedGroups::run({groups.add(4, 1)}), {StatusCode::invalid_argument}));
  const std::uint32_t most = subject().device->info().max_grid[0];
  if (most != 0xffffffff) {  // above it, a driver may do anything: y = 0, so that it does nothing
    groups.write({5, most - 2, 0, 1});
    CHECK(CountedGroups::run({groups.add()}).ok());
    groups.write({5, most + 1, 0, 1});
    const Status refused = CountedGroups::run({groups.add()});
    CHECK(refused.code == StatusCode::invalid_argument);
    CHECK_THAT(refused.message, Catch::Contains("reads grid x = " + std::to_string(most + 1)) &&
                                    Catch::Contains("expected 0 to " + std::to_string(most)));
  }
  CHECK(CountedGroups::run({groups.set()}).ok());  // the queue goes on
}

TEST_CASE("conformance: eight threads submit and wait at once", "[conformance][queue]") {
  if (!present()) return;
  constexpr std::size_t thread_count = 8, submits = 6;
  std::vector<std::unique_ptr<Job>> jobs;
  for (std::size_t i = 0; i < thread_count; ++i) jobs.push_back(std::make_unique<Job>(40 + i));
  std::vector<std::vector<std::uint64_t>> values(thread_count);
  std::vector<std::string> failures(thread_count);
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < thread_count; ++i) {
    threads.emplace_back([&, i] {
      for (std::size_t n = 0; n < submits; ++n) {
        const auto value = jobs[i]->submit();
        if (!value) failures[i] = value.error().text();
        if (!value) return;
        values[i].push_back(*value);
        const auto fence = subject().device->wait(*value, Deadline::never());
        if (!fence) failures[i] = fence.error().text();
      }
      failures[i] += jobs[i]->difference();
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<std::uint64_t> all;
  for (std::size_t i = 0; i < thread_count; ++i) {
    CHECK(failures[i] == "");
    CHECK(std::is_sorted(values[i].begin(), values[i].end()));
    all.insert(values[i].begin(), values[i].end());
  }
  CHECK(all.size() == thread_count * submits);
}

}  // namespace kiln::conformance
