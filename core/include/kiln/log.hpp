// Log: where library code says things. Silent unless the application gives a sink; the library never prints.
//
// Thread-safety: a LogSink is called from any thread, also from several at once. Ownership: Log borrows its sink, which
// outlives every object that was given the Log.
#pragma once

#include <cstdint>
#include <string_view>

namespace kiln {

enum class LogLevel : std::uint8_t { invalid = 0, debug, info, warning, error, off };

std::string_view to_string(LogLevel level) noexcept;

class LogSink {
 public:
  LogSink() = default;
  LogSink(const LogSink&) = delete;
  LogSink& operator=(const LogSink&) = delete;
  virtual ~LogSink();

  // component: "opengl", "cache", …; message: one line without a newline.
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
