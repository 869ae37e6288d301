#include "device.hpp"

#include <kiln/clock.hpp>

#include <algorithm>
#include <cstring>
#include <vector>

namespace kiln::opengl {
namespace {

constexpr std::size_t job_bytes = std::size_t{1} << 20;
// A kernel comes to its data more than once, which is what a mapping costs where memory is the device's own.
constexpr int touches = 4;
constexpr int rounds = 6;  // the first of them finds the pages
// Ways that differ by less are alike, and the kind of the device decides: the choice is kept, and a machine has its
// moods.
constexpr double clearly = 1.5;

struct Times {
  std::uint64_t mapped_ns = UINT64_MAX;
  std::uint64_t staged_ns = UINT64_MAX;
};

// A job's two buffers, and the job: bytes there, the device at work on them, bytes back.
class Trial {
 public:
  static Result<Trial> make(const std::shared_ptr<ContextGroup>& group, Transfer transfer) {
    const auto staging = std::make_shared<SharedStaging>();  // stays empty: neither usage needs it
    auto in = GlBuffer::create(group, staging, transfer, {job_bytes, BufferUsage::upload, {}, -1});
    if (!in) return in.error();
    auto out = GlBuffer::create(group, staging, transfer, {job_bytes, BufferUsage::readback, {}, -1});
    if (!out) return out.error();
    return Trial(*group, std::move(in).value(), std::move(out).value());
  }

  // On the context's thread.
  Result<std::uint64_t> run(std::span<std::byte> host) {
    const Gl& gl = group_->gl();
    auto& in = static_cast<GlBuffer&>(*in_);
    auto& out = static_cast<GlBuffer&>(*out_);
    constexpr auto bytes = static_cast<GLsizeiptr>(job_bytes);
    const std::uint64_t begin = now_ns();
    if (Status status = in.write(0, host); !status.ok()) return status;
    if (in.shadow() != nullptr) copy_in(gl, *in.shadow(), in.name(), bytes);
    gl.BindBuffer(GL_COPY_READ_BUFFER, in.name());
    gl.BindBuffer(GL_COPY_WRITE_BUFFER, out.name());
    for (int i = 0; i < touches; ++i) {
      gl.CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, 0, 0, bytes);
    }
    if (out.shadow() != nullptr) copy_back(gl, *out.shadow(), out.name(), bytes);
    gl.MemoryBarrier(GL_CLIENT_MAPPED_BUFFER_BARRIER_BIT);
    gl.Finish();
    if (Status status = out.read(0, host); !status.ok()) return status;
    const std::uint64_t ns = now_ns() - begin;
    if (Status status = group_->check("measuring transfers"); !status.ok()) return status;
    return ns;
  }

 private:
  Trial(ContextGroup& group, std::unique_ptr<Buffer> in, std::unique_ptr<Buffer> out)
      : group_(&group), in_(std::move(in)), out_(std::move(out)) {}

  ContextGroup* group_;
  std::unique_ptr<Buffer> in_, out_;
};

// The shortest of several jobs each, in turns, so that what else the machine does meets both.
Result<Times> measure(const std::shared_ptr<ContextGroup>& group) {
  auto mapped = Trial::make(group, Transfer::mapped);
  if (!mapped) return mapped.error();
  auto staged = Trial::make(group, Transfer::staged);
  if (!staged) return staged.error();
  std::vector<std::byte> host(job_bytes);
  Times times;
  for (int round = 0; round < rounds; ++round) {
    const auto mapped_ns = mapped->run(host);
    if (!mapped_ns) return mapped_ns.error();
    const auto staged_ns = staged->run(host);
    if (!staged_ns) return staged_ns.error();
    if (round == 0) continue;
    times.mapped_ns = std::min(times.mapped_ns, *mapped_ns);
    times.staged_ns = std::min(times.staged_ns, *staged_ns);
  }
  return times;
}

Transfer usual(DeviceKind kind) noexcept { return kind == DeviceKind::software ? Transfer::mapped : Transfer::staged; }

Transfer faster(const Times& times, DeviceKind kind) noexcept {
  const auto mapped = static_cast<double>(times.mapped_ns);
  const auto staged = static_cast<double>(times.staged_ns);
  if (mapped * clearly < staged) return Transfer::mapped;
  return staged * clearly < mapped ? Transfer::staged : usual(kind);
}

std::string_view word_of(Transfer transfer) noexcept { return transfer == Transfer::mapped ? "mapped" : "staged"; }

std::string name_of_note(const DeviceInfo& info) {
  std::string name = "transfer of " + std::to_string(job_bytes) + " bytes";
  for (const auto* identity : {&info.device_identity, &info.driver_identity}) {
    for (const auto& [key, value] : *identity) name += "; " + key + " " + value;
  }
  return name;
}

std::optional<Transfer> kept(std::string_view name, DriverNotes& notes) {
  const auto note = notes.find(name);
  if (!note) return std::nullopt;
  const std::string_view text(reinterpret_cast<const char*>(note->data()), note->size());
  for (const Transfer each : {Transfer::mapped, Transfer::staged}) {
    if (text == word_of(each)) return each;
  }
  return std::nullopt;  // what this version does not know is found out again
}

}  // namespace

Transfer choose_transfer(const std::shared_ptr<ContextGroup>& group, Mapping wanted, const DeviceInfo& info,
                         DriverNotes* notes) {
  if (wanted == Mapping::never || group->gl().BufferStorage == nullptr) return Transfer::copied;
  if (wanted == Mapping::always) return Transfer::mapped;
  if (wanted == Mapping::staging) return Transfer::staged;
  if (notes == nullptr) return usual(info.kind);
  const std::string name = name_of_note(info);
  if (const auto known = kept(name, *notes)) return *known;
  const auto times = group->execution().call([&] { return measure(group); });
  if (!times) {
    group->log().write(LogLevel::warning, "opengl", times.error().within("transfer modes were not compared").message);
    return usual(info.kind);
  }
  const Transfer choice = faster(*times, info.kind);
  group->log().write(LogLevel::info, "opengl",
                     info.id + ": 1 MiB: upload and readback take " + std::to_string(times->mapped_ns / 1000) +
                         " us mapped and " + std::to_string(times->staged_ns / 1000) +
                         " us staged: " + std::string(word_of(choice)) + " is used from now on");
  notes->keep(name, std::as_bytes(std::span(word_of(choice))));
  return choice;
}

}  // namespace kiln::opengl
