// Status and Result<T>: how every fallible call of Kiln answers.
//
// A Status is a code and a message for a person; the message names the object and both sides of a mismatch.
// Result<T> is a value or a failed Status, with the member names of std::expected (which GCC 12 lacks).
// Thread-safety: values; distinct objects are independent. Ownership: both own what they hold.
// Exceptions: a call of a Runtime, a ProgramCache, an Executor, a DeviceSelector, a Driver, a Device or a
// KernelGenerator that answers a Status, a Result or a report throws nothing. Every other function of Kiln may throw
// std::bad_alloc where memory is exhausted, and nothing else.
// "Absent" is not an error: such calls answer std::optional.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

namespace kiln {

enum class StatusCode : std::uint8_t {
  ok = 0,
  invalid_argument,  // the caller's value is wrong: it will fail again
  not_found,         // a named thing does not exist
  unsupported,       // understood, and not possible here: permanent for this object
  unavailable,       // not possible now: another device, or later, may serve
  corrupt,           // stored bytes are damaged or not authentic
  io,                // the operating system refused
  timeout,           // the deadline passed; the work may still be running
  device_lost,       // the device is gone until it is opened again
  cancelled,         // the caller took it back before it was done
  internal,          // a bug in Kiln
};

// The code's name as it stands in reports: "invalid_argument".
std::string_view to_string(StatusCode code) noexcept;

struct [[nodiscard]] Status {
  StatusCode code = StatusCode::ok;
  std::string message;

  bool ok() const noexcept { return code == StatusCode::ok; }

  // The same failure with "context: " in front of its message. An ok Status stays as it is.
  Status within(std::string_view context) const;

  // "invalid_argument: the message", or "ok".
  std::string text() const;
};

inline Status ok_status() { return {}; }
inline Status invalid_argument(std::string message) { return {StatusCode::invalid_argument, std::move(message)}; }
inline Status not_found(std::string message) { return {StatusCode::not_found, std::move(message)}; }
inline Status unsupported(std::string message) { return {StatusCode::unsupported, std::move(message)}; }
inline Status unavailable(std::string message) { return {StatusCode::unavailable, std::move(message)}; }
inline Status corrupt(std::string message) { return {StatusCode::corrupt, std::move(message)}; }
inline Status io_error(std::string message) { return {StatusCode::io, std::move(message)}; }
inline Status timed_out(std::string message) { return {StatusCode::timeout, std::move(message)}; }
inline Status device_lost(std::string message) { return {StatusCode::device_lost, std::move(message)}; }
inline Status cancelled(std::string message) { return {StatusCode::cancelled, std::move(message)}; }
inline Status internal_error(std::string message) { return {StatusCode::internal, std::move(message)}; }

// REQUIRES: called in a catch clause. The exception as a Status: unavailable where memory is exhausted ("out of
// memory") or the system gives no thread, with its reason; internal, with what() it says, for every other. `context`
// stands before the message, as by within().
//   Status Mine::start() noexcept try { ...; return {}; } catch (...) { return caught("mine"); }
Status caught(std::string_view context = {}) noexcept;

// A T, or the Status that says why there is none. REQUIRES: a Result is never made from an ok Status.
template <class T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::in_place_index<0>, std::move(value)) {}
  Result(Status status) : state_(std::in_place_index<1>, std::move(status)) {
    if (std::get<1>(state_).ok()) std::get<1>(state_) = internal_error("Result made from an ok Status");
  }

  bool has_value() const noexcept { return state_.index() == 0; }
  explicit operator bool() const noexcept { return has_value(); }

  // REQUIRES: has_value().
  T& value() & noexcept { return *std::get_if<0>(&state_); }
  const T& value() const& noexcept { return *std::get_if<0>(&state_); }
  T&& value() && noexcept { return std::move(*std::get_if<0>(&state_)); }
  T& operator*() & noexcept { return value(); }
  const T& operator*() const& noexcept { return value(); }
  T&& operator*() && noexcept { return std::move(*this).value(); }
  T* operator->() noexcept { return std::get_if<0>(&state_); }
  const T* operator->() const noexcept { return std::get_if<0>(&state_); }

  // REQUIRES: !has_value().
  const Status& error() const& noexcept { return *std::get_if<1>(&state_); }
  Status&& error() && noexcept { return std::move(*std::get_if<1>(&state_)); }

  T value_or(T other) && { return has_value() ? std::move(*this).value() : std::move(other); }

 private:
  std::variant<T, Status> state_;
};

}  // namespace kiln
