/* What cuDNN's libraries need of the driver on a machine without one: plans can be made, as if their code had been loaded. Nothing
 * can run. */
int cuGetErrorString(int error, const char** text) {
  (void)error;
  *text = "there is no driver";
  return 0;
}
int cuGetErrorName(int error, const char** text) {
  return cuGetErrorString(error, text);
}

static int loaded(void** handle) {
  static char something;
  *handle = &something;
  return 0;
}
int cuModuleLoadData(void** module, const void* image) {
  (void)image;
  return loaded(module);
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)module, (void)name;
  return loaded(function);
}
int cuModuleUnload(void* module) {
  (void)module;
  return 0;
}
int cuLibraryLoadData(void** library, const void* code) {
  (void)code;
  return loaded(library);
}
int cuLibraryLoadFromFile(void** library, const char* file) {
  (void)file;
  return loaded(library);
}
int cuLibraryGetKernel(void** kernel, void* library, const char* name) {
  (void)library, (void)name;
  return loaded(kernel);
}
int cuLibraryUnload(void* library) {
  (void)library;
  return 0;
}
int cuKernelGetFunction(void** function, void* kernel) {
  (void)kernel;
  return loaded(function);
}
int cuKernelSetAttribute(void) {
  return 0;
}
int cuKernelGetAttribute(int* value) {
  *value = 0;
  return 0;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

/* Whatever else is looked for says that there is no device. */
#define ABSENT(name) \
  int name(void) {   \
    return 100;      \
  }
ABSENT(cuCtxGetCurrent)
ABSENT(cuCtxGetLimit)
ABSENT(cuCtxPopCurrent)
ABSENT(cuCtxPushCurrent)
ABSENT(cuDeviceGet)
ABSENT(cuDeviceGetCount)
ABSENT(cuLaunchCooperativeKernel)
ABSENT(cuLaunchKernel)
ABSENT(cuLaunchKernelEx)
ABSENT(cuLinkAddData)
ABSENT(cuLinkComplete)
ABSENT(cuLinkCreate)
ABSENT(cuLinkDestroy)
ABSENT(cuOccupancyMaxPotentialClusterSize)
ABSENT(cuStreamGetCtx)
ABSENT(cuTensorMapEncodeIm2col)
ABSENT(cuTensorMapEncodeTiled)
