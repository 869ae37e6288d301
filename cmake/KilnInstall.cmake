# The installed tree: headers, CMake package (kiln::core), pkg-config file. Targets install themselves where they are made.
