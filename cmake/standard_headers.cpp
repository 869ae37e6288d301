// Carries the precompiled headers of the standard library that core and the plugins reuse.
