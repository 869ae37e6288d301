kiln_add_fuzzer(png
  SOURCES data/png.cpp data/png_codec.cpp data/regular_file.cpp base/atomic_file.cpp base/digest.cpp base/status.cpp
          contract/interfaces.cpp base/clock.cpp contract/kernel_spec.cpp contract/tensor.cpp contract/names.cpp
  LIBRARIES OpenSSL::Crypto PNG::PNG ZLIB::ZLIB)
