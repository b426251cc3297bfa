/* What cuDNN's libraries need of the driver to be loaded on a machine without one; nothing of it is called to make plans. */
int cuGetErrorString(int error, const char** text) {
  (void)error;
  *text = "there is no driver";
  return 0;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  (void)function, (void)module, (void)name;
  return 1;
}
int cuModuleLoadData(void** module, const void* image) {
  (void)module, (void)image;
  return 1;
}
int cuModuleUnload(void* module) {
  (void)module;
  return 1;
}
int cuTensorMapEncodeIm2col(void) {
  return 1;
}
int cuTensorMapEncodeTiled(void) {
  return 1;
}
