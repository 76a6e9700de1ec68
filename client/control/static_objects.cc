// Static objects of this library, most of them gRPC's, are not destroyed while the process ends:
// the library is loaded by the call that joins the job, so they would be before handlers of atexit
// run that the program has registered earlier, and a program may leave the job in one of those.
//
// The linker has all of the library's code call this in place of __cxa_atexit (option --wrap).
#include <cstring>

extern "C" {

int __real___cxa_atexit(void (*destroy)(void*), void* object, void* library);
// Of std::ios_base::Init, which each file has that includes <iostream>. The last one to be
// destroyed writes out std::cout, so each has to count.
void _ZNSt8ios_base4InitD1Ev(void* object);

int __wrap___cxa_atexit(void (*destroy)(void*), void* object, void* library) {
  return destroy == _ZNSt8ios_base4InitD1Ev ? __real___cxa_atexit(destroy, object, library) : 0;
}

}  // extern "C"
