// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * breaktest_flood ADDRESS PORT CLIENT FIRST LAST RATE COUNT: sends COUNT SYNs to ADDRESS:PORT (IPv4), RATE a second.
 * Every eighth is forged in the name of CLIENT's ports FIRST to LAST, where real connections may live; the others come
 * from all over 198.18.0.0/15. Prints the number sent at the end, or when standard input ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define BATCH 64u

struct packet {
	struct iphdr ip;
	struct tcphdr tcp;
};

static struct {
	struct sockaddr_in to;
	uint32_t client;
	uint16_t first, last;
} flood;

static uint64_t dice = 0x9e3779b97f4a7c15ull;

static uint32_t throw_dice(void)
{
	dice ^= dice << 13;
	dice ^= dice >> 7;
	dice ^= dice << 17;
	return (uint32_t)(dice >> 32);
}

static uint32_t sum_words(const void *data, size_t length)
{
	uint32_t sum = 0;
	uint16_t word;

	for (size_t i = 0; i < length; i += sizeof(word)) {
		memcpy(&word, (const char *)data + i, sizeof(word));
		sum += word;
	}
	return sum;
}

static uint16_t tcp_checksum(const struct packet *p)
{
	uint32_t sum = sum_words(&p->ip.saddr, 8) + sum_words(&p->tcp, sizeof(p->tcp)) + htons(IPPROTO_TCP) +
		       htons(sizeof(p->tcp));

	sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t) ~(sum + (sum >> 16));
}

static void forge(struct packet *p, bool living)
{
	uint16_t port = living ? (uint16_t)(flood.first + throw_dice() % (flood.last - flood.first + 1u)) :
				 (uint16_t)(1024 + throw_dice() % 60000);

	*p = (struct packet){
		.ip = { .version = 4,
			.ihl = 5,
			.ttl = 64,
			.protocol = IPPROTO_TCP,
			.tot_len = htons(sizeof(*p)),
			.saddr = living ? flood.client : htonl(0xc6120000u | (throw_dice() & 0x1ffff)),
			.daddr = flood.to.sin_addr.s_addr },
		.tcp = { .source = htons(port),
			 .dest = flood.to.sin_port,
			 .seq = throw_dice(),
			 .doff = 5,
			 .syn = 1,
			 .window = htons(65535) },
	};
	p->tcp.check = tcp_checksum(p);
}

/* How many went. */
static unsigned int send_batch(int fd, unsigned long number)
{
	static struct packet packet[BATCH];
	struct iovec part[BATCH];
	struct mmsghdr message[BATCH];
	int sent;

	for (unsigned int i = 0; i < BATCH; i++) {
		forge(&packet[i], (number + i) % 8 == 0);
		part[i] = (struct iovec){ &packet[i], sizeof(packet[i]) };
		message[i] = (struct mmsghdr){ .msg_hdr = { .msg_name = &flood.to,
							    .msg_namelen = sizeof(flood.to),
							    .msg_iov = &part[i],
							    .msg_iovlen = 1 } };
	}
	sent = sendmmsg(fd, message, BATCH, 0);
	if (sent < 0 && errno != ENOBUFS) {
		perror("breaktest_flood");
		exit(1);
	}
	return sent < 0 ? 0 : (unsigned int)sent;
}

int main(int argc, char **argv)
{
	struct pollfd input = { .fd = 0, .events = POLLIN };
	unsigned long count, sent = 0;
	struct timespec next;
	double pause;
	int fd;

	if (argc != 8)
		return 2;
	flood.to = (struct sockaddr_in){ .sin_family = AF_INET,
					 .sin_addr.s_addr = inet_addr(argv[1]),
					 .sin_port = htons((uint16_t)atoi(argv[2])) };
	flood.client = inet_addr(argv[3]);
	flood.first = (uint16_t)atoi(argv[4]);
	flood.last = (uint16_t)atoi(argv[5]);
	pause = BATCH * 1e9 / atof(argv[6]);
	count = strtoul(argv[7], NULL, 10);
	fd = socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_RAW);
	if (fd < 0)
		return 1;
	clock_gettime(CLOCK_MONOTONIC, &next);
	while (sent < count && !poll(&input, 1, 0)) {
		sent += send_batch(fd, sent);
		next.tv_nsec += (long)pause;
		next.tv_sec += next.tv_nsec / 1000000000;
		next.tv_nsec %= 1000000000;
		clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &next, NULL);
	}
	printf("%lu\n", sent);
	return 0;
}
