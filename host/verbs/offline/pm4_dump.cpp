// `kiln pm4 dump FILE`: a command stream in words.
#include <kiln/regular_file.hpp>
#include "session.hpp"
#include "verbs/finish.hpp"
#include "verbs/verbs.hpp"

#include <span>

namespace kiln::host {
namespace {

constexpr std::uint64_t most_stream_bytes = std::uint64_t{64} << 20;

}  // namespace

int pm4_dump(const Options& options) {
  const auto stream = read_whole_file(options.subject, most_stream_bytes);
  if (!stream) {
    complain(stream.error().message);
    return exit_usage;
  }
  Session session(options);
  if (const auto end = session.open_plugins()) return *end;
  const auto& printers = session.registry().stream_printers();
  const auto found = printers.find("pm4");
  if (found == printers.end()) {
    complain("no loaded plugin reads PM4 streams: add amdgpu_pm4 to plugins.load");
    return exit_job_failed;
  }
  const auto printer = found->second.make(session.offline_context(found->second.plugin));
  if (!printer) return complain_of(printer.error());
  const auto text = (*printer)->print(std::as_bytes(std::span(*stream)), options.target);
  if (!text) return complain_of(text.error().within("file " + options.subject));
  if (options.json) return finish_json({{"schema", 1}, {"file", options.subject}, {"text", *text}}, options);
  return finish(*text, options);
}

}  // namespace kiln::host
