#include <kiln/log.hpp>

namespace kiln {

LogSink::~LogSink() = default;

std::string_view to_string(LogLevel level) noexcept {
  switch (level) {
    case LogLevel::debug:
      return "debug";
    case LogLevel::info:
      return "info";
    case LogLevel::warning:
      return "warning";
    case LogLevel::error:
      return "error";
    case LogLevel::off:
      return "off";
    case LogLevel::invalid:
      break;
  }
  return "invalid";
}

}  // namespace kiln
