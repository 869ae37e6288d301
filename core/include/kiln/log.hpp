// Log: receives the messages of the library. The library itself never prints.
//
// Thread-safety: the library calls a LogSink from several threads at once. Ownership: a Log borrows its sink. The sink must
// outlive every object that has the Log.
//
//   kiln::Log log{&sink, kiln::LogLevel::info};
//   log.write(kiln::LogLevel::warning, "cache", "the folder is not writable");
#pragma once

#include <cstdint>
#include <string_view>

namespace [[gnu::visibility("default")]] kiln {

enum class LogLevel : std::uint8_t { invalid = 0, debug, info, warning, error, off };

std::string_view to_string(LogLevel level) noexcept;

class LogSink {
 public:
  LogSink() = default;
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;
  virtual ~LogSink();

  // component: "opengl", "cache"; message: one line without a newline. May be called from several threads at once.
  virtual void write(LogLevel level, std::string_view component, std::string_view message) noexcept = 0;
};

struct Log {
  LogSink* sink = nullptr;
  LogLevel least = LogLevel::warning;

  bool wants(LogLevel level) const noexcept { return sink != nullptr && level >= least; }
  void write(LogLevel level, std::string_view component, std::string_view message) const noexcept {
    if (wants(level)) sink->write(level, component, message);
  }
};

}  // namespace kiln
