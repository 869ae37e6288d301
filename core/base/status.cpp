#include <kiln/clock.hpp>
#include <kiln/log.hpp>
#include <kiln/status.hpp>

#include <exception>
#include <new>
#include <system_error>

namespace kiln {

std::string_view to_string(StatusCode code) noexcept {
  switch (code) {
    case StatusCode::ok:
      return "ok";
    case StatusCode::invalid_argument:
      return "invalid_argument";
    case StatusCode::not_found:
      return "not_found";
    case StatusCode::unsupported:
      return "unsupported";
    case StatusCode::unavailable:
      return "unavailable";
    case StatusCode::corrupt:
      return "corrupt";
    case StatusCode::io:
      return "io";
    case StatusCode::timeout:
      return "timeout";
    case StatusCode::device_lost:
      return "device_lost";
    case StatusCode::cancelled:
      return "cancelled";
    case StatusCode::internal:
      return "internal";
    case StatusCode::wrong_result:
      return "wrong_result";
  }
  return "invalid";
}

Status Status::within(std::string_view context) const {
  if (ok()) return *this;
  std::string whole(context);
  whole += ": ";
  whole += message;
  return {code, std::move(whole)};
}

std::string Status::text() const {
  if (ok()) return "ok";
  std::string whole(to_string(code));
  whole += ": ";
  whole += message;
  return whole;
}

Status caught(std::string_view context) noexcept {
  const Status no_memory{StatusCode::unavailable, "out of memory"};  // short enough to need none
  try {
    const auto in_context = [&](const Status& status) { return context.empty() ? status : status.within(context); };
    try {
      throw;
    } catch (const std::bad_alloc&) {
      return in_context(no_memory);
    } catch (const std::system_error& error) {
      return in_context(unavailable(error.what()));
    } catch (const std::exception& error) {
      return in_context(internal_error(error.what()));
    } catch (...) {
      return in_context(internal_error("an exception of unknown type was thrown"));
    }
  } catch (...) {
    return {StatusCode::unavailable, "out of memory"};
  }
}

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

Deadline Deadline::after(std::chrono::nanoseconds wait) noexcept {
  const Clock::time_point now = Clock::now();
  if (wait >= Clock::time_point::max() - now) return never();
  return {now + wait};
}

std::chrono::nanoseconds Deadline::left() const noexcept {
  if (at == Clock::time_point::max()) return std::chrono::nanoseconds::max();
  const Clock::time_point now = Clock::now();
  return now >= at ? std::chrono::nanoseconds::zero() : at - now;
}

std::uint64_t now_ns() noexcept {
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count());
}

}  // namespace kiln
