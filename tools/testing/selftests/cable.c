// SPDX-License-Identifier: GPL-2.0
/*
 * cable.c - a cable between two netdevs that loses what it is told to
 */
#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "cable.h"
#include "lib.h"

#define ETH 14
#define TAG 4
#define UDP 8
#define ROCE_PORT 4791
#define FRAME 65536

struct frame {
	uint8_t data[FRAME];
	size_t len;
};

static struct {
	int fd[2];
	pthread_mutex_t lock;
	struct cable_rule rule;
	unsigned int seen[256];
	int matched;
	unsigned int struck;
	struct frame now;
	struct frame late[2];
	FILE *pcap;
} cable = { .lock = PTHREAD_MUTEX_INITIALIZER };

static int open_end(const char *variable)
{
	const char *name = getenv(variable);
	struct sockaddr_ll at = {
		.sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL),
	};
	struct packet_mreq all = { .mr_type = PACKET_MR_PROMISC };
	int fd, one = 1, room = 8 << 20;

	CHECK(name);
	fd = socket(AF_PACKET, SOCK_RAW, htons(ETH_P_ALL));
	CHECK(fd >= 0);
	at.sll_ifindex = all.mr_ifindex = if_nametoindex(name);
	CHECK(at.sll_ifindex);
	OK(setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &one,
		      sizeof(one)));
	OK(setsockopt(fd, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all,
		      sizeof(all)));
	OK(setsockopt(fd, SOL_PACKET, PACKET_AUXDATA, &one, sizeof(one)));
	OK(setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)));
	OK(setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &room, sizeof(room)));
	OK(bind(fd, (struct sockaddr *)&at, sizeof(at)));
	return fd;
}

/* The opcode of a RoCEv2 packet, or -1. */
static int opcode_of(const struct frame *f)
{
	const uint8_t *p = f->data;
	size_t net = ETH, udp;

	if (f->len < ETH + TAG + 20 + UDP + 12)
		return -1;
	if (p[12] == 0x81 && p[13] == 0x00)
		net += TAG;
	if (p[net - 2] == 0x08 && p[net - 1] == 0x00 &&
	    p[net + 9] == IPPROTO_UDP)
		udp = net + (p[net] & 15) * 4;
	else if (p[net - 2] == 0x86 && p[net - 1] == 0xdd &&
		 p[net + 6] == IPPROTO_UDP)
		udp = net + 40;
	else
		return -1;
	if (f->len < udp + UDP + 12)
		return -1;
	if ((p[udp + 2] << 8 | p[udp + 3]) != ROCE_PORT)
		return -1;
	return p[udp + UDP];
}

static void capture(const struct frame *f)
{
	uint32_t head[4] = { 0, 0, f->len, f->len };
	struct timespec ts;

	clock_gettime(CLOCK_REALTIME, &ts);
	head[0] = ts.tv_sec;
	head[1] = ts.tv_nsec / 1000;
	fwrite(head, sizeof(head), 1, cable.pcap);
	fwrite(f->data, f->len, 1, cable.pcap);
	fflush(cable.pcap);
}

static enum cable_act judge(int opcode)
{
	const struct cable_rule *rule = &cable.rule;
	enum cable_act act = CABLE_PASS;

	pthread_mutex_lock(&cable.lock);
	if (opcode >= 0) {
		cable.seen[opcode]++;
		if (rule->act != CABLE_PASS &&
		    (rule->opcode < 0 || rule->opcode == opcode) &&
		    ++cable.matched >= rule->nth &&
		    (rule->count < 0 ||
		     cable.matched < rule->nth + rule->count)) {
			act = rule->act;
			cable.struck++;
		}
		if (cable.pcap)
			capture(&cable.now);
	}
	pthread_mutex_unlock(&cable.lock);
	return act;
}

static void pass(int side, const struct frame *f)
{
	/* a full queue loses it, as any cable may */
	(void)!send(cable.fd[!side], f->data, f->len, 0);
}

static void carry(int side)
{
	struct frame *now = &cable.now, *late = &cable.late[side];
	enum cable_act act = judge(opcode_of(now));

	if (act == CABLE_DROP)
		return;
	if (act == CABLE_LATE) {
		*late = *now;
		return;
	}
	if (act == CABLE_SPOIL)
		now->data[now->len - 5] ^= 1;
	pass(side, now);
	if (act == CABLE_TWICE)
		pass(side, now);
	if (late->len) {
		pass(side, late);
		late->len = 0;
	}
}

/* The kernel takes a VLAN tag out of the frame and tells it beside. */
static void put_tag_back(struct frame *f, struct msghdr *msg)
{
	const struct tpacket_auxdata *aux;
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);

	if (!c || c->cmsg_level != SOL_PACKET || c->cmsg_type != PACKET_AUXDATA)
		return;
	aux = (void *)CMSG_DATA(c);
	if (!(aux->tp_status & TP_STATUS_VLAN_VALID))
		return;
	memmove(f->data + ETH - 2 + TAG, f->data + ETH - 2, f->len - (ETH - 2));
	f->data[ETH - 2] = 0x81;
	f->data[ETH - 1] = 0x00;
	f->data[ETH] = aux->tp_vlan_tci >> 8;
	f->data[ETH + 1] = aux->tp_vlan_tci & 0xff;
	f->len += TAG;
}

static bool take(int fd, struct frame *f)
{
	union {
		struct cmsghdr head;
		uint8_t room[CMSG_SPACE(sizeof(struct tpacket_auxdata))];
	} control;
	struct iovec iov = { f->data, FRAME - TAG };
	struct msghdr msg = {
		.msg_iov = &iov, .msg_iovlen = 1,
		.msg_control = &control, .msg_controllen = sizeof(control),
	};
	ssize_t n = recvmsg(fd, &msg, MSG_DONTWAIT);

	if (n < ETH)
		return false;
	f->len = n;
	put_tag_back(f, &msg);
	return true;
}

static void *run(void *arg)
{
	struct pollfd fds[2] = {
		{ .fd = cable.fd[0], .events = POLLIN },
		{ .fd = cable.fd[1], .events = POLLIN },
	};
	int i;

	for (;;) {
		poll(fds, 2, -1);
		for (i = 0; i < 2; i++)
			if (take(cable.fd[i], &cable.now))
				carry(i);
	}
	return arg;
}

void cable_set(const struct cable_rule *rule)
{
	static const struct cable_rule nothing = { CABLE_PASS, 0, 0, 0 };

	pthread_mutex_lock(&cable.lock);
	cable.rule = rule ? *rule : nothing;
	memset(cable.seen, 0, sizeof(cable.seen));
	cable.matched = 0;
	cable.struck = 0;
	pthread_mutex_unlock(&cable.lock);
}

void cable_start(const struct cable_rule *rule)
{
	pthread_t thread;

	cable.fd[0] = open_end("CABLE_A");
	cable.fd[1] = open_end("CABLE_B");
	cable_set(rule);
	OK(pthread_create(&thread, NULL, run, NULL));
}

unsigned int cable_seen(int opcode)
{
	unsigned int i, n = 0;

	pthread_mutex_lock(&cable.lock);
	for (i = 0; i < 256; i++)
		if (opcode < 0 || opcode == (int)i)
			n += cable.seen[i];
	pthread_mutex_unlock(&cable.lock);
	return n;
}

unsigned int cable_struck(void)
{
	unsigned int n;

	pthread_mutex_lock(&cable.lock);
	n = cable.struck;
	pthread_mutex_unlock(&cable.lock);
	return n;
}

void cable_capture(const char *path)
{
	static const uint32_t head[] = {
		0xa1b2c3d4, 2 | 4 << 16, 0, 0, FRAME, 1 /* Ethernet */
	};
	FILE *f = fopen(path, "a");

	CHECK(f && !fseek(f, 0, SEEK_END));
	if (!ftell(f))
		CHECK(fwrite(head, sizeof(head), 1, f) == 1);
	pthread_mutex_lock(&cable.lock);
	cable.pcap = f;
	pthread_mutex_unlock(&cable.lock);
}
