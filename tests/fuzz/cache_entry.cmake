kiln_add_fuzzer(cache_entry
  SOURCES base/checksum.cpp base/clock.cpp base/digest.cpp base/hmac.cpp base/json.cpp base/secret_key.cpp base/status.cpp
          cache/format/entry_format.cpp cache/format/entry_meta.cpp cache/format/inflaters.cpp cache/format/key_material.cpp
          cache/format/manifest.cpp contract/interfaces.cpp contract/kernel_spec.cpp contract/tensor.cpp contract/names.cpp
  LIBRARIES OpenSSL::Crypto ${KILN_zstd_LIBRARY} nlohmann_json::nlohmann_json)
