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
      return in_context(internal_error("an exception of an unknown type"));
    }
  } catch (...) {
    return {StatusCode::unavailable, "out of memory"};
  }
}

}  // namespace kiln
