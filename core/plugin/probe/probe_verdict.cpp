#include "plugin/probe/probe_verdict.hpp"

#include <algorithm>

namespace kiln {
namespace {

constexpr std::string_view ok_line = "kiln-probe 1 ok";
constexpr std::string_view failed_line = "kiln-probe 1 failed ";
// A pipe takes a line of this size in one piece.
constexpr std::size_t most_line_bytes = 2048;

constexpr StatusCode failures[] = {StatusCode::invalid_argument, StatusCode::not_found,   StatusCode::unsupported,
                                   StatusCode::unavailable,      StatusCode::corrupt,     StatusCode::io,
                                   StatusCode::timeout,          StatusCode::device_lost, StatusCode::internal};

}  // namespace

std::string_view to_string(VerdictKind kind) noexcept {
  switch (kind) {
    case VerdictKind::ok:
      return "ok";
    case VerdictKind::failed:
      return "failed";
    case VerdictKind::crashed:
      return "crashed";
    case VerdictKind::hung:
      return "hung";
    case VerdictKind::invalid:
      break;
  }
  return "invalid";
}

std::optional<VerdictKind> verdict_kind_of(std::string_view name) noexcept {
  for (const VerdictKind kind : {VerdictKind::ok, VerdictKind::failed, VerdictKind::crashed, VerdictKind::hung}) {
    if (name == to_string(kind)) return kind;
  }
  return std::nullopt;
}

std::optional<StatusCode> status_code_of(std::string_view name) noexcept {
  for (const StatusCode code : failures) {
    if (name == to_string(code)) return code;
  }
  return std::nullopt;
}

std::chrono::seconds pause_after(std::uint32_t attempts) noexcept {
  if (attempts <= 1) return std::chrono::seconds(0);
  constexpr std::uint32_t most_doublings = 6;
  return std::chrono::seconds(60) * (1u << std::min(attempts - 2, most_doublings));  // at most about an hour
}

std::uint32_t patience_after(std::uint32_t attempts) noexcept { return std::min(attempts + 1, 4u); }

bool ProbeVerdict::lasting() const noexcept {
  return kind != VerdictKind::failed || (status.code != StatusCode::unavailable && status.code != StatusCode::io &&
                                         status.code != StatusCode::timeout && status.code != StatusCode::not_found);
}

std::string to_line(const Status& outcome) {
  if (outcome.ok()) return std::string(ok_line) += '\n';
  std::string line(failed_line);
  line += to_string(outcome.code);
  line += ' ';
  line += outcome.message;
  std::ranges::replace(line, '\n', ' ');
  line.resize(std::min(line.size(), most_line_bytes));
  return line + "\n";
}

std::optional<ProbeVerdict> verdict_of_line(std::string_view line) {
  if (!line.ends_with('\n')) return std::nullopt;
  line.remove_suffix(1);
  if (line == ok_line) return ProbeVerdict{VerdictKind::ok, {}};
  if (!line.starts_with(failed_line)) return std::nullopt;
  line.remove_prefix(failed_line.size());
  const auto code = status_code_of(line.substr(0, line.find(' ')));
  if (!code) return std::nullopt;
  const std::size_t message = line.find(' ');
  return ProbeVerdict{VerdictKind::failed, {*code, std::string(message == line.npos ? "" : line.substr(message + 1))}};
}

}  // namespace kiln
