kiln_add_fuzzer(config
  SOURCES base/digest.cpp base/json.cpp base/log.cpp base/status.cpp
    config/draft.cpp config/key_table.cpp config/overrides.cpp config/plugin_sections.cpp config/reader.cpp
    config/sections.cpp config/show.cpp config/value_rule.cpp
    config/jobs/job_keys.cpp config/jobs/job_reader.cpp config/jobs/job_table.cpp config/jobs/kernel_keys.cpp
    config/text/nearest_word.cpp config/text/text_file.cpp config/text/toml_document.cpp config/text/toml_guard.cpp config/text/toml_text.cpp
    config/text/units.cpp
    contract/interfaces.cpp base/clock.cpp contract/kernel_spec.cpp contract/names.cpp contract/tensor.cpp
  LIBRARIES OpenSSL::Crypto nlohmann_json::nlohmann_json)
