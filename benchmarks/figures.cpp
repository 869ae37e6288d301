#include "figures.hpp"

#include "base/os/atomic_file.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <kiln_json.hpp>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <span>
#include <stdexcept>

namespace kiln::bench {
namespace {

// To six digits, which is more than any figure here is good for. Counts are smaller.
double rounded(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return std::strtod(text, nullptr);
}

// The quartiles outwards: of three samples the least and the greatest.
Json spread(std::vector<double> samples) {
  std::ranges::sort(samples);
  const double last = static_cast<double>(samples.size() - 1);
  const auto at = [&](double place) { return rounded(samples[static_cast<std::size_t>(place)]); };
  return {{"median", rounded(quantile(samples, 0.5))},
          {"low", at(std::floor(0.25 * last))},
          {"high", at(std::ceil(0.75 * last))},
          {"samples", samples.size()}};
}

// Above 1: Kiln is better.
double ratio_of(double kiln, double peer, Better better) { return better == Better::less ? peer / kiln : kiln / peer; }

Json ratio_json(const Figure& figure) {
  const std::vector<double>& peer = figure.peer->samples;
  if (peer.size() == figure.kiln.size()) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < peer.size(); ++i) ratios.push_back(ratio_of(figure.kiln[i], peer[i], figure.better));
    Json all = spread(ratios);
    all.erase("samples");
    return all;
  }
  const auto at = [&](double kiln, double of_peer) {
    return ratio_of(quantile(figure.kiln, kiln), quantile(peer, of_peer), figure.better);
  };
  const double one = at(0.25, 0.75), other = at(0.75, 0.25);
  const double middle = at(0.5, 0.5);  // of few samples not between the two by necessity
  return {{"median", rounded(middle)},
          {"low", rounded(std::min({one, other, middle}))},
          {"high", rounded(std::max({one, other, middle}))}};
}

std::string short_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", value);
  return text;
}

Json target_json(const Figure& figure, const Json& ratio) {
  const bool of_ratio = figure.target->of == Target::Of::ratio;
  const double reached = of_ratio ? ratio.at("median").get<double>() : quantile(figure.kiln, 0.5);
  const bool more = of_ratio || figure.better == Better::more;
  const std::string unit = of_ratio ? "x" : figure.unit.empty() ? "" : " " + figure.unit;
  return {{"text", (more ? ">= " : "<= ") + short_text(figure.target->value) + unit},
          {"value", figure.target->value},
          {"met", more ? reached >= figure.target->value : reached <= figure.target->value}};
}

Json figure_json(const Figure& figure) {
  Json json{{"id", figure.id},
            {"name", figure.name},
            {"unit", figure.unit},
            {"better", figure.better == Better::less ? "less" : "more"},
            {"kiln", spread(figure.kiln)},
            {"peer", nullptr},
            {"ratio", nullptr},
            {"target", nullptr},
            {"verified", nullptr},
            {"stable", figure.stable},
            {"group", nullptr},
            {"device", nullptr}};
  if (figure.peer) {
    json["peer"] = {{"name", figure.peer->name}};
    json["peer"].update(spread(figure.peer->samples));
    json["ratio"] = ratio_json(figure);
  }
  if (figure.target) json["target"] = target_json(figure, json["ratio"]);
  if (figure.verified) json["verified"] = *figure.verified;
  if (!figure.group.empty()) json["group"] = figure.group;
  if (!figure.device.empty()) json["device"] = figure.device;
  return json;
}

void check(const Figure& figure) {
  const auto refuse = [&](const char* why) { throw std::runtime_error("figure '" + figure.id + "': " + why); };
  const auto bad = [&](const std::vector<double>& samples) {
    return samples.empty() || !std::ranges::all_of(samples, [](double each) { return std::isfinite(each); });
  };
  if (figure.better == Better::invalid) refuse("neither less nor more is better");
  if (bad(figure.kiln)) refuse("no samples of Kiln, or one that is no number");
  if (figure.peer && bad(figure.peer->samples)) refuse("no samples of the peer, or one that is no number");
  if (figure.target && figure.target->of == Target::Of::ratio && !figure.peer)
    refuse("a target for a ratio to no peer");
}

}  // namespace

double quantile(std::vector<double> of, double share) {
  std::ranges::sort(of);
  const double place = share * static_cast<double>(of.size() - 1), part = place - std::floor(place);
  const double low = of[static_cast<std::size_t>(place)], high = of[static_cast<std::size_t>(std::ceil(place))];
  const double between = low > 0 ? low * std::pow(high / low, part) : low + (high - low) * part;
  return std::clamp(between, low, high);
}

double geometric_mean(const std::vector<double>& of) {
  double logs = 0;
  for (const double each : of) logs += std::log(each);
  return std::exp(logs / static_cast<double>(of.size()));
}

FigureFile FigureFile::of_words(int& count, char** words) {
  FigureFile file;
  for (int i = 1; i + 1 < count; ++i) {
    if (std::strcmp(words[i], "--figures") != 0) continue;
    file.path_ = words[i + 1];
    prctl(PR_SET_PDEATHSIG, SIGKILL);                        // who asked for the file is gone: nobody waits for it
    std::copy(words + i + 2, words + count + 1, words + i);  // with the null behind the last
    count -= 2;
    break;
  }
  return file;
}

void FigureFile::add(Figure figure) {
  check(figure);
  figures_.push_back(std::move(figure));
}

void FigureFile::print() const {
  for (const Figure& figure : figures_) {
    const std::string group = figure.group.empty() ? "" : " (" + figure.group + ")";
    std::printf("%-70s %10.6g %s", (figure.name + group).c_str(), quantile(figure.kiln, 0.5), figure.unit.c_str());
    if (figure.peer) std::printf("   %s %.6g", figure.peer->name.c_str(), quantile(figure.peer->samples, 0.5));
    std::printf("\n");
  }
  if (!skipped_.empty()) std::printf("not measured: %s\n", skipped_.c_str());
}

void FigureFile::write() const {
  if (path_.empty()) return;
  Json json{{"schema", 1},
            {"kind", "figures"},
            {"versions", Json::object()},
            {"skipped", nullptr},
            {"figures", Json::array()}};
  for (const auto& [of, what] : versions_) json["versions"][of] = what;
  if (!skipped_.empty()) json["skipped"] = skipped_;
  for (const Figure& figure : figures_) json["figures"].push_back(figure_json(figure));
  const std::string text = json_text(json, 1) + "\n";
  auto file = AtomicFile::create(path_);
  if (!file) throw std::runtime_error(file.error().text());
  Status status = file->write(std::as_bytes(std::span(text.data(), text.size())));
  if (status.ok()) status = file->commit();
  if (!status.ok()) throw std::runtime_error(status.text());
}

namespace {

// A call that nothing makes with this argument marks a span's ends.
constexpr long mark = -770017;
constexpr long of_begin = 1, of_end = 2;
constexpr int cannot_be_traced = 77;

[[noreturn]] void be_traced(const std::function<void(const SystemCallSpan&)>& work) {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(cannot_be_traced);
  raise(SIGSTOP);
  try {
    work(SystemCallSpan());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "counted work: %s\n", error.what());
    _exit(1);
  }
  _exit(0);
}

// The child is stopped where a call begins or ends.
class Counter {
 public:
  void look(pid_t pid) {
    __ptrace_syscall_info info{};
    if (ptrace(static_cast<__ptrace_request>(PTRACE_GET_SYSCALL_INFO), pid, sizeof info, &info) <= 0) return;
    if (info.op != PTRACE_SYSCALL_INFO_ENTRY) return;
    const bool marks = info.entry.nr == SYS_getpgid && static_cast<int>(info.entry.args[0]) == static_cast<int>(mark);
    if (!marks) {
      ++calls_;
    } else if (info.entry.args[1] == static_cast<std::uint64_t>(of_begin)) {
      calls_ = 0;
    } else {
      spans.push_back(calls_);
    }
  }
  std::vector<std::uint64_t> spans;

 private:
  std::uint64_t calls_ = 0;
};

int next_stop(pid_t pid) {
  int status = 0;
  while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

}  // namespace

void SystemCallSpan::begin() const { syscall(SYS_getpgid, mark, of_begin); }
void SystemCallSpan::end() const { syscall(SYS_getpgid, mark, of_end); }

std::optional<std::vector<std::uint64_t>> count_system_calls(const std::function<void(const SystemCallSpan&)>& work,
                                                             std::string& why) {
  std::fflush(nullptr);  // or the child would write it again
  const pid_t pid = fork();
  if (pid < 0) throw std::runtime_error(std::string("fork: ") + std::strerror(errno));
  if (pid == 0) be_traced(work);
  Counter counter;
  int status = next_stop(pid);
  if (WIFSTOPPED(status)) {
    ptrace(PTRACE_SETOPTIONS, pid, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL);
    long deliver = 0;
    while (!WIFEXITED(status) && !WIFSIGNALED(status)) {
      if (ptrace(PTRACE_SYSCALL, pid, nullptr, deliver) != 0) break;
      status = next_stop(pid);
      deliver = 0;
      if (!WIFSTOPPED(status)) continue;
      if (WSTOPSIG(status) == (SIGTRAP | 0x80)) {
        counter.look(pid);
      } else {
        deliver = WSTOPSIG(status);
      }
    }
  }
  if (WIFEXITED(status) && WEXITSTATUS(status) == cannot_be_traced) {
    why = "system calls: this process may not trace its children";
    return std::nullopt;
  }
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("the counted work failed");
  return counter.spans;
}

}  // namespace kiln::bench
