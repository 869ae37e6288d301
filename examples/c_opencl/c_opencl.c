/* An OpenCL application that gets its program from Kiln's cache: the first process compiles it, later ones load it. */
#include <kiln_opencl.h>
#include <stdio.h>

static const char* const source =
    "kernel void saxpy(float a, global const float* x, global float* y) {\n"
    "  size_t i = get_global_id(0);\n"
    "  y[i] = a * x[i] + y[i];\n"
    "}\n";

static int failed(kiln_status* status) {
  if (status == NULL) return 0;
  fprintf(stderr, "c_opencl: %s: %s\n", kiln_code_name(kiln_status_code(status)), kiln_status_message(status));
  kiln_status_free(status);
  return 1;
}

int main(void) {
  enum { count = 1024 };
  static const char* const tiers[] = {"nowhere", "memory", "disk", "the compiler"};
  float x[count], y[count], a = 2.5f;
  size_t size = count, wrong = 0, i;
  cl_platform_id platform;
  cl_device_id device;
  kiln_cache* cache = NULL;
  kiln_program* program = NULL;
  if (clGetPlatformIDs(1, &platform, NULL) != CL_SUCCESS ||
      clGetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS) {
    fprintf(stderr, "c_opencl: no OpenCL device; install pocl-opencl-icd or another driver\n");
    return 77;
  }
  cl_context context = clCreateContext(NULL, 1, &device, NULL, NULL, NULL);
  if (failed(kiln_cache_open(NULL, &cache)) ||
      failed(kiln_opencl_program(cache, context, device, source, NULL, "saxpy", &program))) {
    return 1;
  }
  for (i = 0; i < count; ++i) x[i] = (float)i, y[i] = 1.0f;
  cl_command_queue queue = clCreateCommandQueue(context, device, 0, NULL);
  cl_mem on_x = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof x, x, NULL);
  cl_mem on_y = clCreateBuffer(context, CL_MEM_COPY_HOST_PTR, sizeof y, y, NULL);
  cl_kernel kernel = clCreateKernel(kiln_opencl_program_of(program), "saxpy", NULL);
  clSetKernelArg(kernel, 0, sizeof a, &a);
  clSetKernelArg(kernel, 1, sizeof on_x, &on_x);
  clSetKernelArg(kernel, 2, sizeof on_y, &on_y);
  clEnqueueNDRangeKernel(queue, kernel, 1, NULL, &size, NULL, 0, NULL, NULL);
  clEnqueueReadBuffer(queue, on_y, CL_TRUE, 0, sizeof y, y, 0, NULL, NULL);
  for (i = 0; i < count; ++i) wrong += y[i] != 2.5f * (float)i + 1.0f;
  printf("program from %s, %u of %u results wrong\n", tiers[kiln_program_tier(program)], (unsigned)wrong, (unsigned)count);
  kiln_program_free(program);
  kiln_cache_close(cache);
  return wrong != 0;
}
