// SPDX-License-Identifier: GPL-2.0
/*
 * umad.c - management datagrams through /dev/infiniband/umadN
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/ioctl.h>

#include "umad.h"

uint64_t be_get(const void *p, unsigned int bytes)
{
	const uint8_t *b = p;
	uint64_t value = 0;

	while (bytes--)
		value = value << 8 | *b++;
	return value;
}

void be_put(void *p, unsigned int bytes, uint64_t value)
{
	uint8_t *b = p;

	while (bytes--) {
		b[bytes] = (uint8_t)value;
		value >>= 8;
	}
}

static bool is_of(unsigned int n, const char *device)
{
	char file[64], name[64] = "";
	FILE *f;

	snprintf(file, sizeof(file), "/sys/class/infiniband_mad/umad%u/ibdev", n);
	f = fopen(file, "r");
	if (!f)
		return false;
	if (fscanf(f, "%63s", name) != 1)
		name[0] = '\0';
	fclose(f);
	return !strcmp(name, device);
}

int umad_open(const char *device)
{
	char file[64];
	unsigned int n;
	int fd;

	for (n = 0; n < 64; n++) {
		if (!is_of(n, device))
			continue;
		snprintf(file, sizeof(file), "/dev/infiniband/umad%u", n);
		fd = open(file, O_RDWR | O_NONBLOCK | O_CLOEXEC);
		if (fd >= 0)
			ioctl(fd, IB_USER_MAD_ENABLE_PKEY);
		return fd;
	}
	errno = ENODEV;
	return -1;
}

int umad_agent(int fd, uint8_t class, uint8_t version)
{
	struct ib_user_mad_reg_req req = {
		.qpn = 1, .mgmt_class = class, .mgmt_class_version = version,
	};

	return ioctl(fd, IB_USER_MAD_REGISTER_AGENT, &req) ? -1 : (int)req.id;
}

void umad_address(struct umad_packet *p, int agent, const union ibv_gid *gid,
		  int gid_index)
{
	memset(p, 0, sizeof(*p));
	p->hdr.id = agent;
	p->hdr.qpn = htonl(1);
	p->hdr.qkey = htonl(QP1_QKEY);
	p->hdr.grh_present = 1;
	p->hdr.gid_index = gid_index;
	p->hdr.hop_limit = 64;
	memcpy(p->hdr.gid, gid, sizeof(p->hdr.gid));
}
