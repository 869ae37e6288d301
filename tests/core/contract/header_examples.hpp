// What the usage examples of the public headers use without declaring it. Examples are compiled, not linked or run.
#pragma once

#include <kiln/runtime.hpp>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

extern kiln::AheadCompiler& compiler;
extern kiln::BufferDesc desc;
extern kiln::Config config;
extern kiln::Conv2dSpec conv;
extern kiln::Device& device;
extern kiln::Device& first;
extern kiln::Device& second;
extern kiln::DeviceSelector& selector;
extern kiln::Driver& driver;
extern kiln::DriverNotes& notes;
extern kiln::Executor& executor;
extern kiln::KernelGenerator& generator;
extern kiln::KernelSource source;
extern kiln::KernelSpec spec;
extern kiln::LogSink& sink;
extern kiln::Program& program;
extern kiln::ProgramCache& cache;
extern kiln::ProgramKey key;
extern kiln::ProgramResource resource;
extern kiln::Registry& registry;
extern kiln::RunReport report;
extern kiln::RunRequest request;
extern kiln::Runtime& runtime;
extern kiln::Submission submission;
extern kiln::TraceSink* trace;
extern kiln::UniformPlace place;
extern kiln::UserKernelSpec kernel;
extern kiln::VariantBench& bench;
extern kiln::ConfigSources sources;
extern std::span<const kiln::Candidate> candidates;
extern std::atomic<bool> interrupted;
extern std::shared_ptr<kiln::HostTensor> input, output;
extern std::shared_ptr<const kiln::Constant> weights;
extern std::span<const std::byte> bytes, measured;
extern std::span<const std::string_view> names;
extern std::string text, message;
extern std::string_view word, glsl;
extern std::vector<std::byte> block;
extern const std::byte* values;
extern std::uint64_t value;
extern kiln::UserKernelSpec::Uniform::Type given;

const kiln::DeviceInfo& info();
kiln::Result<int> parse(std::string_view text);
kiln::Result<std::unique_ptr<kiln::Driver>> make_driver(const kiln::DriverContext& context);
void poll(std::chrono::nanoseconds longest);
void serve();
void use(int value);
void (*eglGetProcAddress(const char* name))();
void glUseProgram(unsigned int program);
