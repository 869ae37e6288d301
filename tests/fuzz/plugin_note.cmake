kiln_add_fuzzer(plugin_note SOURCES plugin/file/elf_notes.cpp plugin/file/plugin_note.cpp base/status.cpp)
