#include "simulator/command_processor/command_processor.hpp"

#include <array>
#include <atomic>
#include <utility>
#include <vector>

#include "simulator/command_processor/machine.hpp"
#include "simulator/command_processor/packet_table.hpp"
#include "simulator/memory/address_space.hpp"

namespace kiln::simulator {
namespace {

constexpr std::uint64_t most_dwords = 0xFFFFF;
constexpr std::uint32_t nop_alone = 0x3FFF;  // COUNT of the NOP without a body
constexpr std::uint32_t high_half = 0xFFFF;  // the mask of a dword that holds an address's high bits and nothing else

// One indirect buffer as it is read.
struct Stream {
  std::uint64_t address = 0;
  std::vector<std::uint32_t> dwords;
  std::size_t at = 0;

  std::uint64_t here() const { return address + at * 4; }
  bool ended() const { return at == dwords.size(); }
};

Fault stream_fault(FaultKind kind, std::uint64_t address, std::string why) {
  return {kind, address, {}, std::move(why)};
}

}  // namespace

class CommandProcessor::Impl {
 public:
  Impl(CommandProcessorSettings settings, ComputeEngine& engine)
      : settings_(std::move(settings)), engine_(engine), map_(settings_.generation) {
    for (const PacketRule& rule : packet_rules()) rules_[rule.opcode] = &rule;
  }

  Outcome run(const Job& job);
  void stop(const char* reason) noexcept;
  const PacketCounters& counters() const noexcept { return counters_; }

 private:
  Outcome enter(Machine& machine, const IndirectBuffer& buffer, std::uint64_t alignment);
  Outcome run_streams(Machine& machine);
  Outcome step(Machine& machine);
  Outcome read_packet(Machine& machine, Packet& packet, const PacketRule*& rule);
  Outcome check_body(const Machine& machine, const Packet& packet, const PacketRule& rule) const;
  Outcome follow(Machine& machine, const Packet& packet);

  CommandProcessorSettings settings_;
  ComputeEngine& engine_;
  RegisterMap map_;
  std::array<const PacketRule*, 256> rules_{};
  std::atomic<const char*> stop_{nullptr};
  PacketCounters counters_;
  PipelineStatistics statistics_;
  std::vector<Stream> streams_;  // the last is read; those below wait for it to end
  std::uint32_t entered_ = 0;
};

Outcome CommandProcessor::Impl::run(const Job& job) {
  if (job.memory == nullptr || (job.ring != Ring::graphics && job.ring != Ring::compute) ||
      settings_.generation == Generation::invalid)
    return stream_fault(FaultKind::bad_state, 0, "a job without a memory, a ring or a generation");
  Machine machine{.settings = settings_,
                  .engine = engine_,
                  .map = map_,
                  .memory = *job.memory,
                  .stop = stop_,
                  .counters = counters_,
                  .statistics = statistics_,
                  .ring = job.ring,
                  .registers = {}};
  entered_ = 0;
  engine_.forget_code();  // these generations invalidate the instruction cache at the start of every job
  for (const IndirectBuffer& buffer : job.buffers) {
    streams_.clear();
    auto fault = enter(machine, buffer, 32);
    if (!fault) fault = run_streams(machine);
    if (fault) return fault;
  }
  return {};
}

void CommandProcessor::Impl::stop(const char* reason) noexcept {
  stop_.store(reason);
  engine_.stop(reason);
}

// The buffer's dwords are fetched as a whole: what is written into it from here on comes too late, as with a
// prefetcher.
Outcome CommandProcessor::Impl::enter(Machine& machine, const IndirectBuffer& buffer, std::uint64_t alignment) {
  const std::uint64_t start = sign_extended(buffer.address);
  if (start % alignment != 0)
    return stream_fault(FaultKind::misaligned, start,
                        "an indirect buffer that does not start at a multiple of " + std::to_string(alignment));
  if (buffer.bytes % 4 != 0 || buffer.bytes == 0)
    return stream_fault(FaultKind::misaligned, start,
                        "an indirect buffer of " + std::to_string(buffer.bytes) + " bytes, not of whole dwords");
  if (buffer.bytes / 4 > most_dwords)
    return stream_fault(FaultKind::overrun, start,
                        "an indirect buffer of " + std::to_string(buffer.bytes / 4) + " dwords, more than 1,048,575");
  if (++entered_ > settings_.indirect_buffer_limit)
    return stream_fault(
        FaultKind::watchdog, start,
        "the job entered more than " + std::to_string(settings_.indirect_buffer_limit) + " indirect buffers");
  Stream& stream = streams_.emplace_back();
  stream.address = start;
  stream.dwords.resize(static_cast<std::size_t>(buffer.bytes / 4));
  auto fault = machine.memory.load(start, std::as_writable_bytes(std::span(stream.dwords)));
  if (fault) fault->reason += " (the indirect buffer at " + hexadecimal(start) + ")";
  return fault;
}

Outcome CommandProcessor::Impl::run_streams(Machine& machine) {
  while (!streams_.empty()) {
    if (streams_.back().ended()) {
      streams_.pop_back();
      continue;
    }
    if (const char* reason = stop_.load()) return stream_fault(FaultKind::planted, streams_.back().here(), reason);
    if (auto fault = step(machine)) return fault;
  }
  return {};
}

Outcome CommandProcessor::Impl::step(Machine& machine) {
  Packet packet;
  const PacketRule* rule = nullptr;
  if (auto fault = read_packet(machine, packet, rule)) return fault;
  ++counters_.packets;
  streams_.back().at += 1 + packet.body.size();
  if (packet.body.empty()) return {};  // the NOP alone
  if (auto fault = check_body(machine, packet, *rule)) return fault;
  // RADV sets the bit on the compute ring too, which has no predicate.
  if ((packet.header & 1) != 0 && !machine.predicate) return {};
  if (auto fault = rule->act(machine, packet)) return fault;
  return follow(machine, packet);
}

Outcome CommandProcessor::Impl::read_packet(Machine& machine, Packet& packet, const PacketRule*& rule) {
  const Stream& stream = streams_.back();
  const std::uint32_t header = stream.dwords[stream.at];
  packet.address = stream.here();
  packet.header = header;
  packet.name = "header";
  if (const std::uint32_t type = field(header, 31, 30); type != 3)
    return packet.refuse(FaultKind::unknown_packet, "a packet of type " + std::to_string(type) + ", not 3");
  const auto opcode = static_cast<std::uint8_t>(field(header, 15, 8));
  const std::uint32_t count = field(header, 29, 16);
  rule = rules_[opcode];
  if (rule == nullptr) {
    const std::string_view name = refused_packet(opcode);
    return packet.refuse(FaultKind::unknown_packet,
                         "opcode " + hexadecimal(opcode) +
                             (name.empty() ? " is not known" : " (" + std::string(name) + ") is not modelled"));
  }
  packet.name = rule->name;
  const BodyLength& length = machine.graphics() ? rule->graphics : rule->compute;
  if (length.most == 0) return packet.refuse(FaultKind::unknown_packet, "is not a packet of the compute ring");
  const std::uint32_t odd = header & 0xF8U;
  if (odd != 0) return packet.refuse(FaultKind::unknown_packet, "header bits " + hexadecimal(odd) + " are not known");
  if ((header & 4) != 0 && rule->name.substr(0, 4) != "SET_")
    return packet.refuse(FaultKind::unknown_packet, "RESET_FILTER_CAM on a packet that sets no register");
  if (opcode == 0x10 && count == nop_alone) return {};
  const std::uint32_t body = count + 1;
  if (body < length.least || body > length.most)
    return packet.refuse(FaultKind::unknown_packet,
                         "a body of " + std::to_string(body) + " dwords, not of " + std::to_string(length.least) +
                             (length.least == length.most ? "" : " to " + std::to_string(length.most)));
  if (body > stream.dwords.size() - stream.at - 1)
    return packet.refuse(FaultKind::overrun,
                         "its body of " + std::to_string(body) + " dwords passes the end of the indirect buffer");
  packet.body = std::span(stream.dwords).subspan(stream.at + 1, body);
  return {};
}

Outcome CommandProcessor::Impl::check_body(const Machine& machine, const Packet& packet, const PacketRule& rule) const {
  const auto& known = machine.gfx11() ? rule.known_gfx11 : rule.known_gfx10_3;
  for (std::size_t at = 0; at < packet.body.size() && at < known.size(); ++at)
    if (const std::uint32_t odd = packet.body[at] & ~known[at];
        odd != 0 && !(known[at] == high_half && is_high_half(packet.body[at])))
      return packet.refuse(FaultKind::unknown_packet, at, "bits " + hexadecimal(odd) + " are not known");
  return {};
}

// Where the stream goes on after a packet that asked for it.
Outcome CommandProcessor::Impl::follow(Machine& machine, const Packet& packet) {
  Stream& stream = streams_.back();
  if (const std::uint32_t skip = std::exchange(machine.skip, 0); skip != 0) {
    if (skip > stream.dwords.size() - stream.at)
      return packet.refuse(FaultKind::overrun,
                           "skips " + std::to_string(skip) + " dwords, past the end of the indirect buffer");
    stream.at += skip;
  }
  if (!machine.enter) return {};
  const IndirectBuffer buffer = *std::exchange(machine.enter, std::nullopt);
  if (machine.enter_for_good) {
    if (!stream.ended())
      return packet.refuse(FaultKind::bad_state, "CHAIN is not the last packet of its indirect buffer");
    if (streams_.size() > 1) return packet.refuse(FaultKind::bad_state, "CHAIN inside a buffer that was called");
    streams_.pop_back();
  } else if (streams_.size() > 1) {
    return packet.refuse(FaultKind::bad_state, "a call inside a buffer that was called");
  }
  return enter(machine, buffer, 4);
}

CommandProcessor::CommandProcessor(CommandProcessorSettings settings, ComputeEngine& engine)
    : impl_(std::make_unique<Impl>(std::move(settings), engine)) {}
CommandProcessor::~CommandProcessor() = default;
std::optional<Fault> CommandProcessor::run(const Job& job) { return impl_->run(job); }
void CommandProcessor::stop(const char* reason) noexcept { impl_->stop(reason); }
const PacketCounters& CommandProcessor::counters() const noexcept { return impl_->counters(); }

}  // namespace kiln::simulator
