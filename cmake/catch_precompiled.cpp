// Carries the precompiled Catch2 header that every test binary reuses.
