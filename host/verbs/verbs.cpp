#include "verbs/verbs.hpp"

#include "console.hpp"
#include "text_table.hpp"

#include <kiln/result_files.hpp>
#include <kiln/version.hpp>

namespace kiln::host {

int complain_of(const Status& status) {
  complain(visible(status.message));
  return status.code == StatusCode::invalid_argument ? exit_usage : exit_job_failed;
}

Status check_output(const Options& options) {
  if (!options.output) return {};
  const auto file = followed(*options.output);
  if (!file) return file.error();
  if (Status status = check_replaceable(*file); !status.ok()) return status;
  return check_writable(*file);
}

bool write_result(const std::string& text, const Options& options) {
  const Status written = emit(text, options.output);
  if (written.ok()) return true;
  complain(visible(written.message));
  if (options.output) (void)emit(text, std::nullopt);
  return false;
}

int finish(const std::string& text, const Options& options, int status) {
  const bool written = write_result(text, options);
  return written || status != exit_done ? status : exit_job_failed;
}

int finish_json(const Json& json, const Options& options, int status) {
  return finish(json_text(json, 2) + "\n", options, status);
}

int print_help(const Options& options) { return finish(options.help_text, options); }

int print_version(const Options& options) { return finish("kiln " + std::string(version) + "\n", options); }

}  // namespace kiln::host
