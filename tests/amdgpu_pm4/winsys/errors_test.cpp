#include "amdgpu_pm4/winsys/errors.hpp"

#include <catch2/catch.hpp>
#include <cerrno>

namespace kiln::amdgpu_pm4 {

TEST_CASE("winsys: every error number has its type and keeps its words") {
  CHECK(status_of(0, "anything").ok());
  struct Case {
    int error;
    StatusCode code;
    const char* words;
  };
  for (const Case& each : {Case{-ETIME, StatusCode::timeout, "Timer expired"},
                           {-ECANCELED, StatusCode::cancelled, "lost to a reset"},
                           {-ENODEV, StatusCode::device_lost, "taken away"},
                           {-ENOMEM, StatusCode::unavailable, "Cannot allocate memory"},
                           {-ENOSPC, StatusCode::unavailable, "No space left"},
                           {-EACCES, StatusCode::unavailable, "Permission denied"},
                           {-EINVAL, StatusCode::invalid_argument, "Invalid argument"},
                           {-EIO, StatusCode::io, "Input/output error"},
                           {-ENODATA, StatusCode::io, "No data available"}}) {
    const Status status = status_of(each.error, "the call");
    INFO(status.text());
    CHECK(status.code == each.code);
    CHECK_THAT(status.message, Catch::StartsWith("the call: ") && Catch::Contains(each.words));
    CHECK(status_of(-each.error, "the call").message == status.message);
  }
}

}  // namespace kiln::amdgpu_pm4
