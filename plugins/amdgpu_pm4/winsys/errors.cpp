#include "amdgpu_pm4/winsys/errors.hpp"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

namespace kiln::amdgpu_pm4 {

Status status_of(int error, std::string_view doing) {
  if (error == 0) return {};
  const int number = std::abs(error);
  std::string message = std::string(doing) + ": " + std::generic_category().message(number);
  switch (number) {
    case ETIME:
    case ETIMEDOUT:
      return timed_out(std::move(message));
    case ECANCELED:
      return cancelled(message + ": the context was lost to a reset of the device");
    case ENODEV:
      return device_lost(message + ": the device was taken away");
    case ENOMEM:
    case ENOSPC:
    case EBUSY:
    case EACCES:
    case EPERM:
      return unavailable(std::move(message));
    case EINVAL:
    case ERANGE:
    case ENOENT:
      return invalid_argument(std::move(message));
    default:
      return io_error(std::move(message));
  }
}

}  // namespace kiln::amdgpu_pm4
