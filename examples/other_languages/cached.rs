// A Rust application that keeps what it compiles in Kiln's cache, through the C interface:
//   rustc cached.rs -l kiln && ./cached
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_void};
use std::ptr;

// Of kiln.h: what is used here. A struct has all members that its header has, and `size` first.
#[repr(C)]
struct Identity {
    size: usize,
    api: *const c_char,
    device: *const c_char,
    driver: *const c_char,
    context: *const c_void,
}
#[repr(C)]
struct Compiler {
    size: usize,
    user: *mut c_void,
    build: Option<extern "C" fn(*mut c_void, *mut c_void) -> c_int>,
    load: Option<extern "C" fn(*mut c_void, *mut c_void, *const c_void, usize) -> c_int>,
    destroy: Option<extern "C" fn(*mut c_void)>,
}
extern "C" {
    fn kiln_cache_open(options: *const c_void, cache: *mut *mut c_void) -> *mut c_void;
    fn kiln_cache_close(cache: *mut c_void);
    fn kiln_key_builder_create(cache: *mut c_void, identity: *const Identity, label: *const c_char, builder: *mut *mut c_void) -> *mut c_void;
    fn kiln_key_builder_text(builder: *mut c_void, name: *const c_char, text: *const c_char) -> *mut c_void;
    fn kiln_key_builder_finish(builder: *const c_void, key: *mut *mut c_void) -> *mut c_void;
    fn kiln_key_builder_free(builder: *mut c_void);
    fn kiln_key_free(key: *mut c_void);
    fn kiln_request_set_bytes(request: *mut c_void, bytes: *const c_void, count: usize) -> c_int;
    fn kiln_cache_get_or_build(cache: *mut c_void, key: *const c_void, compiler: *const Compiler, program: *mut *mut c_void) -> *mut c_void;
    fn kiln_program_bytes(program: *const c_void, count: *mut usize) -> *const u8;
    fn kiln_program_tier(program: *const c_void) -> c_int;
    fn kiln_program_free(program: *mut c_void);
    fn kiln_status_message(status: *const c_void) -> *const c_char;
    fn kiln_status_free(status: *mut c_void);
}

const KILN_OK: c_int = 0;
const KILN_UNAVAILABLE: c_int = 4;
const TIERS: [&str; 4] = ["nowhere", "memory", "disk", "the compiler"];

// "Compiles" the source: each byte plus one. A panic must not leave a callback.
extern "C" fn build(user: *mut c_void, request: *mut c_void) -> c_int {
    let source = unsafe { &*(user as *const &CStr) };
    let code: Vec<u8> = source.to_bytes().iter().map(|byte| byte.wrapping_add(1)).collect();
    let given = unsafe { kiln_request_set_bytes(request, code.as_ptr() as *const c_void, code.len()) };
    if given != 0 { KILN_OK } else { KILN_UNAVAILABLE }
}

fn text(bytes: &'static [u8]) -> &'static CStr {
    CStr::from_bytes_with_nul(bytes).unwrap()
}

// Ends the process with the message of a failure.
fn check(status: *mut c_void) {
    if status.is_null() {
        return;
    }
    let message = unsafe { CStr::from_ptr(kiln_status_message(status)) }.to_string_lossy().into_owned();
    unsafe { kiln_status_free(status) };
    eprintln!("cached: {}", message);
    std::process::exit(1);
}

fn main() {
    let mut source = text(b"squares of numbers\0");
    let identity = Identity {
        size: std::mem::size_of::<Identity>(),
        api: text(b"plus one\0").as_ptr(),
        device: text(b"any machine\0").as_ptr(),
        driver: text(b"cached.rs 1\0").as_ptr(),
        context: ptr::null(),
    };
    let compiler = Compiler {
        size: std::mem::size_of::<Compiler>(),
        user: &mut source as *mut &CStr as *mut c_void,
        build: Some(build),
        load: None,
        destroy: None,
    };
    let (mut cache, mut builder, mut key, mut program) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    unsafe {
        check(kiln_cache_open(ptr::null(), &mut cache));
        check(kiln_key_builder_create(cache, &identity, text(b"rust\0").as_ptr(), &mut builder));
        check(kiln_key_builder_text(builder, text(b"source\0").as_ptr(), source.as_ptr()));
        check(kiln_key_builder_finish(builder, &mut key));
        check(kiln_cache_get_or_build(cache, key, &compiler, &mut program));
        let mut count = 0;
        let bytes = kiln_program_bytes(program, &mut count);
        let code = std::slice::from_raw_parts(bytes, count);
        let wrong = code.iter().zip(source.to_bytes()).filter(|(made, given)| **made != given.wrapping_add(1)).count();
        println!("program from {}, {} of {} results wrong", TIERS[kiln_program_tier(program) as usize], wrong, code.len());
        kiln_program_free(program);
        kiln_key_free(key);
        kiln_key_builder_free(builder);
        kiln_cache_close(cache);
    }
}
