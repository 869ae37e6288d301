// Probe: the main function of kiln-probe, the child process for operations that may crash or hang.
//
// kiln-probe tests a new plugin, measures variants of a kernel for `kiln tune`, or builds programs. Its file is in
// libexec/kiln (PluginLoader::default_probe()).
// Thread-safety: main thread, once per process.
//
//   int main(int argc, char** argv) { return kiln::probe_main(argc, argv); }
#pragma once

namespace [[gnu::visibility("default")]] kiln {

// Arguments: `load PATH`, `measure` or `build`. Returns the exit status. `load` prints one line on standard output and
// returns normally, so that the parent notices a plugin that crashes at the end of the process. The plugin cannot use
// standard input and output.
int probe_main(int argc, char** argv);

}  // namespace kiln
