#include <kiln/status.hpp>

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

}  // namespace kiln
