#include "verbs/verbs.hpp"

#include "console.hpp"
#include "text_table.hpp"

#include <kiln/version.hpp>

namespace kiln::host {

int complain_of(const Status& status) {
  complain(visible(status.message));
  return status.code == StatusCode::invalid_argument ? exit_usage : exit_job_failed;
}

int finish(const std::string& text, const Options& options, int status) {
  const Status written = emit(text, options.output);
  return written.ok() ? status : complain_of(written);
}

int finish_json(const Json& json, const Options& options, int status) {
  return finish(json_text(json, 2) + "\n", options, status);
}

int print_help(const Options& options) { return finish(options.help_text, options); }

int print_version(const Options& options) { return finish("kiln " + std::string(version) + "\n", options); }

}  // namespace kiln::host
