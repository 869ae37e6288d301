// Probe: the main function of kiln-probe, the child process for what may crash or hang.
//
// It loads a plugin that was not seen before, measures variants of a kernel for `kiln tune`, or builds programs. It lies
// in libexec/kiln beside the library (PluginLoader::default_probe()).
// Thread-safety: main thread, once per process.
//
//   int main(int argc, char** argv) { return kiln::probe_main(argc, argv); }
#pragma once

namespace [[gnu::visibility("default")]] kiln {

// Arguments: `load PATH`, `measure` or `build`. Returns the exit status. `load` prints one line on standard output and
// returns normally, so that a plugin that crashes at the end of the process is noticed. The plugin gets neither standard
// input nor output.
int probe_main(int argc, char** argv);

}  // namespace kiln
