// A Go application that keeps what it compiles in Kiln's cache, through the C interface:
//
//	CGO_CFLAGS="$(pkg-config --cflags kiln-c)" CGO_LDFLAGS="$(pkg-config --libs kiln-c)" go build cached.go && ./cached
package main

/*
#include <kiln.h>
#include <stdlib.h>

extern kiln_code cachedBuild(void* user, kiln_request* request);
*/
import "C"

import (
	"fmt"
	"os"
	"runtime/cgo"
	"unsafe"
)

// "Compiles" the source: each byte plus one. C has a handle of the Go value, since it must not keep Go's pointers.
//
//export cachedBuild
func cachedBuild(user unsafe.Pointer, request *C.kiln_request) C.kiln_code {
	code := []byte((*(*cgo.Handle)(user)).Value().(string))
	for i := range code {
		code[i]++
	}
	if C.kiln_request_set_bytes(request, unsafe.Pointer(&code[0]), C.size_t(len(code))) == 0 {
		return C.KILN_UNAVAILABLE
	}
	return C.KILN_OK
}

// check ends the process with the message of a failure.
func check(status *C.kiln_status) {
	if status == nil {
		return
	}
	fmt.Fprintln(os.Stderr, "cached:", C.GoString(C.kiln_status_message(status)))
	C.kiln_status_free(status)
	os.Exit(1)
}

// text makes a C text that lives as long as the process.
func text(text string) *C.char { return C.CString(text) }

func main() {
	const source = "squares of numbers"
	tiers := []string{"nowhere", "memory", "disk", "the compiler"}
	user := (*cgo.Handle)(C.malloc(C.size_t(unsafe.Sizeof(cgo.Handle(0)))))
	*user = cgo.NewHandle(source)

	var cache *C.kiln_cache
	var builder *C.kiln_key_builder
	var key *C.kiln_key
	var program *C.kiln_program
	identity := C.kiln_identity_of(text("plus one"), text("any machine"), text("cached.go 1"))
	compiler := C.kiln_compiler_default()
	compiler.user = unsafe.Pointer(user)
	compiler.build = (*[0]byte)(C.cachedBuild)
	check(C.kiln_cache_open(nil, &cache))
	check(C.kiln_key_builder_create(cache, &identity, text("go"), &builder))
	check(C.kiln_key_builder_text(builder, text("source"), text(source)))
	check(C.kiln_key_builder_finish(builder, &key))
	check(C.kiln_cache_get_or_build(cache, key, &compiler, &program))

	var count C.size_t
	bytes := C.kiln_program_bytes(program, &count)
	wrong := 0
	for i, made := range C.GoBytes(bytes, C.int(count)) {
		if made != source[i]+1 {
			wrong++
		}
	}
	fmt.Printf("program from %s, %d of %d results wrong\n", tiers[C.kiln_program_tier(program)], wrong, int(count))
	C.kiln_program_free(program)
	C.kiln_key_free(key)
	C.kiln_key_builder_free(builder)
	C.kiln_cache_close(cache)
	user.Delete()
	C.free(unsafe.Pointer(user))
}
