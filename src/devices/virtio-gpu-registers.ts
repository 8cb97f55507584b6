/**
 * Registers, structures and codes of the virtio-gpu device, named as virtio 1.2 names them: 4.1
 * (virtio over PCI), 2.1 and 6 (status, features), 5.7 (GPU device). Structures in the host's memory
 * are given as the byte offsets of their fields. All is little-endian.
 */

/** 4.1.2: the vendor of all virtio devices; 1040h plus device ID 16. */
export const VIRTIO_VENDOR_ID = 0x1af4;
export const VIRTIO_GPU_DEVICE_ID = 0x1050;
/** A device that is not transitional should have a revision of at least 1, a subsystem of at least 40h. */
export const VIRTIO_GPU_REVISION_ID = 1;
export const VIRTIO_GPU_SUBSYSTEM_ID = 0x1100;
/** Display controller, other: without VGA compatibility (5.7.7). */
export const VIRTIO_GPU_CLASS_CODE = 0x038000;

// 4.1.4: vendor-specific capabilities, by cfg_type.
export const VENDOR_CAPABILITY_ID = 0x09;
export const VIRTIO_PCI_CAP_COMMON_CFG = 1;
export const VIRTIO_PCI_CAP_NOTIFY_CFG = 2;
export const VIRTIO_PCI_CAP_ISR_CFG = 3;
export const VIRTIO_PCI_CAP_DEVICE_CFG = 4;
export const VIRTIO_PCI_CAP_PCI_CFG = 5;

// Where the structures are in BAR0, each in a page of its own.
export const BAR0_BYTES = 0x4000;
export const COMMON_CFG = 0x0000;
export const COMMON_CFG_BYTES = 0x3c;
export const ISR_CFG = 0x1000;
export const DEVICE_CFG = 0x2000;
export const DEVICE_CFG_BYTES = 0x10;
export const NOTIFY_CFG = 0x3000;
export const NOTIFY_OFF_MULTIPLIER = 4;

// 4.1.4.3: common configuration, the DWORDs its fields are in.
export const DEVICE_FEATURE_SELECT = COMMON_CFG + 0x00;
export const DEVICE_FEATURE = COMMON_CFG + 0x04;
export const DRIVER_FEATURE_SELECT = COMMON_CFG + 0x08;
export const DRIVER_FEATURE = COMMON_CFG + 0x0c;
/** config_msix_vector in bits 15:0, num_queues in 31:16. */
export const NUM_QUEUES = COMMON_CFG + 0x10;
/** device_status in bits 7:0, config_generation in 15:8, queue_select in 31:16. */
export const DEVICE_STATUS = COMMON_CFG + 0x14;
/** queue_size in bits 15:0, queue_msix_vector in 31:16. */
export const QUEUE_SIZE = COMMON_CFG + 0x18;
/** queue_enable in bits 15:0, queue_notify_off in 31:16. */
export const QUEUE_ENABLE = COMMON_CFG + 0x1c;
export const QUEUE_DESC_LO = COMMON_CFG + 0x20;
export const QUEUE_DESC_HI = COMMON_CFG + 0x24;
export const QUEUE_DRIVER_LO = COMMON_CFG + 0x28;
export const QUEUE_DRIVER_HI = COMMON_CFG + 0x2c;
export const QUEUE_DEVICE_LO = COMMON_CFG + 0x30;
export const QUEUE_DEVICE_HI = COMMON_CFG + 0x34;
/** queue_notify_data, queue_reset: of features that are not offered. */
export const QUEUE_NOTIFY_DATA = COMMON_CFG + 0x38;

export const VIRTIO_MSI_NO_VECTOR = 0xffff;

// 5.7.4: device configuration.
export const EVENTS_READ = DEVICE_CFG + 0x0;
export const EVENTS_CLEAR = DEVICE_CFG + 0x4;
export const NUM_SCANOUTS = DEVICE_CFG + 0x8;
export const NUM_CAPSETS = DEVICE_CFG + 0xc;

// 2.1: device status.
export const STATUS_ACKNOWLEDGE = 1;
export const STATUS_DRIVER = 2;
export const STATUS_DRIVER_OK = 4;
export const STATUS_FEATURES_OK = 8;
export const STATUS_DEVICE_NEEDS_RESET = 64;
export const STATUS_FAILED = 128;

// 4.1.4.5: ISR status.
export const ISR_QUEUE = 1;
export const ISR_CONFIG = 2;

// 6 and 5.7.3: feature bits, those from 32 on less 32.
export const VIRTIO_GPU_F_EDID = 1 << 1;
export const VIRTIO_F_INDIRECT_DESC = 1 << 28;
export const VIRTIO_F_EVENT_IDX = 1 << 29;
export const VIRTIO_F_VERSION_1 = 1 << 0;
export const VIRTIO_F_ACCESS_PLATFORM = 1 << 1;
export const VIRTIO_F_ORDER_PLATFORM = 1 << 4;

export const CONTROL_QUEUE = 0;
export const CURSOR_QUEUE = 1;

// 5.7.6.7: struct virtio_gpu_ctrl_hdr.
export const HDR_TYPE = 0;
export const HDR_FLAGS = 4;
export const HDR_FENCE_ID = 8;
export const HDR_RING_IDX = 20;
export const HDR_BYTES = 24;
export const VIRTIO_GPU_FLAG_FENCE = 1;

/** enum virtio_gpu_ctrl_type: requests. */
export const Command = {
  GET_DISPLAY_INFO: 0x0100,
  RESOURCE_CREATE_2D: 0x0101,
  RESOURCE_UNREF: 0x0102,
  SET_SCANOUT: 0x0103,
  RESOURCE_FLUSH: 0x0104,
  TRANSFER_TO_HOST_2D: 0x0105,
  RESOURCE_ATTACH_BACKING: 0x0106,
  RESOURCE_DETACH_BACKING: 0x0107,
  GET_CAPSET_INFO: 0x0108,
  GET_CAPSET: 0x0109,
  GET_EDID: 0x010a,
  UPDATE_CURSOR: 0x0300,
  MOVE_CURSOR: 0x0301,
} as const;
export type Command = (typeof Command)[keyof typeof Command];

/** enum virtio_gpu_ctrl_type: responses. */
export const Response = {
  OK_NODATA: 0x1100,
  OK_DISPLAY_INFO: 0x1101,
  OK_EDID: 0x1104,
  ERR_UNSPEC: 0x1200,
  ERR_OUT_OF_MEMORY: 0x1201,
  ERR_INVALID_SCANOUT_ID: 0x1202,
  ERR_INVALID_RESOURCE_ID: 0x1203,
  ERR_INVALID_PARAMETER: 0x1205,
} as const;
export type Response = (typeof Response)[keyof typeof Response];

// Requests behind their header: 5.7.6.8 and 5.7.6.10. A rectangle is x, y, width, height, 32 bits each.
export const GET_EDID_SCANOUT = 24;
export const CREATE_2D_RESOURCE = 24;
export const CREATE_2D_FORMAT = 28;
export const CREATE_2D_WIDTH = 32;
export const CREATE_2D_HEIGHT = 36;
export const UNREF_RESOURCE = 24;
export const SET_SCANOUT_RECT = 24;
export const SET_SCANOUT_SCANOUT = 40;
export const SET_SCANOUT_RESOURCE = 44;
export const FLUSH_RECT = 24;
export const FLUSH_RESOURCE = 40;
export const TRANSFER_RECT = 24;
export const TRANSFER_OFFSET = 40;
export const TRANSFER_RESOURCE = 48;
export const BACKING_RESOURCE = 24;
export const ATTACH_NR_ENTRIES = 28;
export const ATTACH_ENTRIES = 32;
export const CURSOR_SCANOUT = 24;
export const CURSOR_X = 28;
export const CURSOR_Y = 32;
export const CURSOR_RESOURCE = 40;
export const CURSOR_HOT_X = 44;
export const CURSOR_HOT_Y = 48;

/** Bytes of each request, header included; of RESOURCE_ATTACH_BACKING without its entries. */
export const REQUEST_BYTES: ReadonlyMap<number, number> = new Map<Command, number>([
  [Command.GET_DISPLAY_INFO, 24],
  [Command.RESOURCE_CREATE_2D, 40],
  [Command.RESOURCE_UNREF, 32],
  [Command.SET_SCANOUT, 48],
  [Command.RESOURCE_FLUSH, 48],
  [Command.TRANSFER_TO_HOST_2D, 56],
  [Command.RESOURCE_ATTACH_BACKING, 32],
  [Command.RESOURCE_DETACH_BACKING, 32],
  [Command.GET_CAPSET_INFO, 32],
  [Command.GET_CAPSET, 32],
  [Command.GET_EDID, 32],
  [Command.UPDATE_CURSOR, 56],
  [Command.MOVE_CURSOR, 56],
]);
export const LONGEST_REQUEST_BYTES = 56;

/** struct virtio_gpu_mem_entry: address, length, padding. */
export const MEM_ENTRY_BYTES = 16;

// struct virtio_gpu_resp_display_info: 16 of rectangle, enabled, flags.
export const MAX_SCANOUTS = 16;
export const DISPLAY_INFO_MODES = 24;
export const DISPLAY_ONE_ENABLED = 16;
export const DISPLAY_ONE_BYTES = 24;
export const DISPLAY_INFO_BYTES = DISPLAY_INFO_MODES + MAX_SCANOUTS * DISPLAY_ONE_BYTES;

// struct virtio_gpu_resp_edid.
export const EDID_SIZE = 24;
export const EDID_DATA = 32;
export const EDID_DATA_BYTES = 1024;
export const RESP_EDID_BYTES = EDID_DATA + EDID_DATA_BYTES;

export const CURSOR_PIXELS = 64;
