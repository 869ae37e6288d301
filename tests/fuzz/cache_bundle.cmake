kiln_add_fuzzer(cache_bundle
  SOURCES base/checksum.cpp base/clock.cpp base/digest.cpp base/hmac.cpp base/json.cpp base/secret_key.cpp base/status.cpp
          cache/bundle/bundle_format.cpp cache/bundle/bundle_key.cpp cache/bundle/ed25519_module.cpp cache/driver_cache/driver_folders.cpp
          cache/folder/key_file_place.cpp cache/folder/open_folder.cpp
          cache/format/entry_format.cpp cache/format/entry_meta.cpp cache/format/inflaters.cpp cache/format/key_material.cpp
          cache/format/manifest.cpp contract/interfaces.cpp contract/kernel_spec.cpp contract/tensor.cpp contract/names.cpp
  LIBRARIES OpenSSL::Crypto ${KILN_zstd_LIBRARY} nlohmann_json::nlohmann_json ${CMAKE_DL_LIBS})
