// The exit statuses of `kiln`: a contract with scripts.
#pragma once

namespace kiln::host {

enum ExitStatus : int {
  exit_done = 0,
  exit_job_failed = 1,
  exit_usage = 2,      // usage or configuration
  exit_no_device = 3,  // no device could serve
};

}  // namespace kiln::host
